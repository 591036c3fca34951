import pytest
from hypothesis import given

from prnas.io.errors import FormatError
from prnas.io.yaml_files import parse_yaml
from prnas.space.operations import Conv, Pool, Skip, Zero
from prnas.space.setting import (
    SETTINGS,
    Limits,
    Setting,
    named_setting,
    setting_from_data,
    setting_to_data,
)
from tests.support.strategies import limits

OWN = """
name: mine
limits: {kernel_min: 3, kernel_max: 9, dilation_max: 3, depth_max: 2, width_max: null}
initial_pool:
  - max 5x5
  - {type: conv, kernel: 5}
  - skip
"""


def test_a_users_own_setting() -> None:
    setting = setting_from_data(parse_yaml(OWN))
    assert setting == Setting("mine", Limits(3, 9, 3, 2, None), (Pool("max", 5), Conv(5), Skip()))


@given(limits())
def test_settings_go_both_ways(bounds: Limits) -> None:
    setting = Setting("own", bounds, (Conv(bounds.kernel_min), Skip()))
    assert setting_from_data(setting_to_data(setting)) == setting


def test_unknown_names_get_the_nearest() -> None:
    with pytest.raises(FormatError, match="Did you mean 'unrestricted'"):
        named_setting("unrestrictd")
    assert named_setting("unrestricted") is SETTINGS["unrestricted"]


def test_all_problems_at_once() -> None:
    with pytest.raises(ValueError, match="holds an operation twice") as error:
        Setting("own", Limits(3, 5), (Conv(7), Conv(7)))
    assert "'conv 7x7' of the initial_pool lies outside the limits" in str(error.value)
    with pytest.raises(ValueError, match="other than 'zero'"):
        Setting("own", Limits(), (Zero(),))
    with pytest.raises(ValueError, match="name must be a string, got 5; initial_pool must hold op"):
        Setting(5, Limits(), ("skip",))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="at most 100 operations"):
        Setting("own", Limits(3, 999), tuple(Conv(2 * half + 1) for half in range(1, 102)))
    with pytest.raises(ValueError, match="kernel_min must not exceed kernel_max, got 7 > 5"):
        Limits(7, 5)


def test_misspelt_limits_are_refused() -> None:
    with pytest.raises(FormatError, match=r"limits\.kernel_mx: unknown key\. Did you mean"):
        setting_from_data({"limits": {"kernel_mx": 5}})

"""A short version of `make torture`: each kind as from the command line."""

import pytest

from tests.support import warm


@pytest.mark.parametrize(
    "arguments",
    [
        ["kills", "--kills", "2", "--seed", "1"],
        pytest.param(
            ["studies", "--kills", "1", "--most", "4", "--engines", "1", "--rows", "1"],
            marks=pytest.mark.slow,
        ),
        pytest.param(["fits", "--kills", "3", "--seed", "1"], marks=pytest.mark.slow),
        pytest.param(["disk", "--rounds", "1", "--seed", "1"], marks=pytest.mark.slow),
        pytest.param(["signals", "--signals", "4", "--seed", "1"], marks=pytest.mark.slow),
    ],
    ids=["kills", "studies", "fits", "disk", "signals"],
)
def test_as_promised(arguments: list[str]) -> None:
    name, *options = arguments
    process = warm.start("-m", f"torture.{name}", *options, cwd=warm.ROOT)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, out + err
    assert "all as promised" in out

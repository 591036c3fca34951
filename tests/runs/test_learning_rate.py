"""The courses of the learning rate."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.runs.preparation import cosine, period_of, power_cosine


@given(st.integers(0, 49), st.floats(1e-4, 1), st.floats(0, 1e-4))
def test_a_power_of_one_is_the_cosine_to_the_bit(epoch: int, lr: float, least: float) -> None:
    assert power_cosine(lr, least, epoch, 50) == cosine(lr, least, epoch, 50)


@pytest.mark.parametrize("power", [2.0, 10.0])
def test_a_power_bends_the_cosine_down_and_keeps_its_ends(power: float) -> None:
    rates = [power_cosine(0.025, 1e-4, epoch, 40, power) for epoch in range(41)]
    assert rates[0] == pytest.approx(0.025)
    assert rates[40] == pytest.approx(1e-4)
    for epoch, rate in enumerate(rates):
        share = (1 + math.cos(math.pi * epoch / 40)) / 2
        bent = (power ** (share + 1) - power) / (power**2 - power)
        assert rate == pytest.approx(1e-4 + (0.025 - 1e-4) * bent)
        assert rate <= cosine(0.025, 1e-4, epoch, 40) + 1e-12
    assert rates == sorted(rates, reverse=True)


def test_a_warm_up_rises_to_the_rate_from_which_the_rest_falls() -> None:
    rates = [power_cosine(1.0, 0.0, epoch, 15, 2.0, 5) for epoch in range(15)]
    assert rates[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert rates[5:] == [power_cosine(1.0, 0.0, epoch, 10, 2.0) for epoch in range(10)]


def test_a_cosine_that_starts_again_takes_longer_each_time() -> None:
    """ENAS's: 10, 20, 40 and 80 epochs."""
    periods = [period_of(epoch, 150, 10, 2) for epoch in range(150)]
    lengths = (10, 20, 40, 80)
    assert periods == [(epoch, length) for length in lengths for epoch in range(length)]
    assert period_of(7, 50, 0, 2) == (7, 50), "none: one for all"
    assert period_of(5, 6, 2, 1) == (1, 2), "all alike"
    assert period_of(9, 10, 4, 2) == (5, 8), "the last one is cut short by the cycle's end"

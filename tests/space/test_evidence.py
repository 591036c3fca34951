"""Means with their errors, and how often chance alone brings as much."""

from math import inf, sqrt
from random import Random
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.space.evidence import LEVEL, Estimate, difference, estimate, t_tails
from prnas.studies.statistics import t_tail

samples = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30)


def test_by_hand() -> None:
    # Mean 2, variance (1 + 0 + 1) / 2 = 1, error sqrt(1 / 3).
    assert estimate([1.0, 2.0, 3.0]) == Estimate(2.0, sqrt(1 / 3), 3)
    # Differences 1, 3, 2: the same.
    assert difference([5.0, 7.0, 9.0], [4.0, 4.0, 7.0]) == Estimate(2.0, sqrt(1 / 3), 3)


@given(samples)
def test_mean_and_error_are_those_of_the_library(sample: list[float]) -> None:
    found = estimate(sample)
    assert found.mean == pytest.approx(fmean(sample), abs=1e-9)
    assert found.error == pytest.approx(stdev(sample) / sqrt(len(sample)), rel=1e-6, abs=1e-9)


def test_what_all_images_share_cancels_in_pairs() -> None:
    generator = Random(1)
    common = [generator.gauss(0, 100) for _ in range(50)]
    one = [value + 1 + generator.gauss(0, 0.1) for value in common]
    assert difference(one, common).beyond_chance
    assert difference(one, common).error < 0.03
    assert not estimate(one).beyond_chance


@pytest.mark.parametrize(
    # The 5 % and 1 % points of printed tables.
    ("freedom", "t", "p"),
    [(1, 12.706, 0.05), (2, 4.303, 0.05), (5, 2.571, 0.05), (10, 3.169, 0.01), (30, 2.042, 0.05)],
)
def test_students_t_is_that_of_the_tables(freedom: int, t: float, p: float) -> None:
    assert t_tails(t, freedom) == pytest.approx(p, rel=2e-3)
    assert t_tails(-t, freedom) == t_tails(t, freedom)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 8, 33, 250, 3999, 4000])
@pytest.mark.parametrize("t", [0.0, 0.3, 1.0, 2.0, 3.5])
def test_students_t_is_that_of_the_integral(freedom: int, t: float) -> None:
    assert t_tails(t, freedom) == pytest.approx(t_tail(t, freedom), rel=5e-3, abs=1e-4)


def test_certain_and_unknown() -> None:
    assert t_tails(inf, 3) == 0.0
    assert estimate([2.0]).p == 1.0  # one number says nothing of its error
    assert estimate([0.0, 0.0]).p == 1.0
    assert estimate([1.0, 1.0]).p == 0.0
    with pytest.raises(ValueError, match="at least one"):
        estimate([])


def test_chance_alone_is_beyond_chance_as_often_as_it_says() -> None:
    generator = Random(2)
    found = [estimate([generator.gauss(0, 1) for _ in range(12)]) for _ in range(4000)]
    share = fmean(one.beyond_chance for one in found)
    assert share == pytest.approx(LEVEL, abs=0.012)  # three and a half deviations

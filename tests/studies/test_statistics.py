import math
from collections.abc import Callable
from itertools import combinations
from random import Random
from statistics import fmean, pvariance

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from prnas.studies import statistics
from prnas.studies.statistics import (
    bootstrap_interval,
    detectable,
    holm,
    kendall_tau,
    needed,
    permutation_test,
    power,
    rank_ranges,
    smallest_p,
    summary,
    t_quantile,
    t_tail,
    variance_components,
)

values = st.floats(-1e3, 1e3).map(lambda value: round(value, 3))
samples = st.lists(values, min_size=2, max_size=5)


# ---------------------------------------------------------------- summaries


def test_a_summary_of_known_numbers() -> None:
    known = summary([2.0, 4.0, 4.0, 6.0])
    assert (known.n, known.mean) == (4, 4.0)
    assert known.deviation == pytest.approx(math.sqrt(8 / 3))
    assert known.interval is not None
    low, high = known.interval
    assert 2 <= low < 4 < high <= 6


def test_one_number_has_no_spread() -> None:
    assert summary([3.0]) == statistics.Summary(1, 3.0, None, None)
    with pytest.raises(ValueError, match="at least one"):
        summary([])


def test_the_interval_is_seeded() -> None:
    numbers = [value**1.5 for value in range(20)]
    assert bootstrap_interval(numbers, seed=1) == bootstrap_interval(numbers, seed=1)
    assert bootstrap_interval(numbers, seed=1) != bootstrap_interval(numbers, seed=2)


def test_the_interval_of_many_numbers_is_that_of_students_t() -> None:
    generator = Random(0)
    numbers = [generator.gauss(10, 2) for _ in range(200)]
    low, high = bootstrap_interval(numbers)
    expected = stats.t.interval(0.95, 199, fmean(numbers), stats.sem(numbers))
    assert (low, high) == pytest.approx(expected, abs=0.02)


def coverage(interval: Callable[[list[float], int], tuple[float, float]], n: int) -> float:
    generator = Random(5)
    hits = 0
    for seed in range(300):
        low, high = interval([generator.gauss(0, 1) for _ in range(n)], seed)
        hits += low <= 0 <= high
    return hits / 300


def test_few_numbers_are_covered_better_than_by_plain_percentiles() -> None:
    def plain(numbers: list[float], seed: int) -> tuple[float, float]:
        draws = np.random.default_rng(seed).choice(numbers, (500, len(numbers)))
        low, high = np.percentile(draws.mean(axis=1), [2.5, 97.5])
        return float(low), float(high)

    def ours(numbers: list[float], seed: int) -> tuple[float, float]:
        return bootstrap_interval(numbers, seed=seed, resamples=500)

    assert coverage(plain, 5) < 0.87
    assert coverage(ours, 5) > 0.9


# ---------------------------------------------------------------- variances


def test_variances_between_and_within_by_hand() -> None:
    # Means 2 and 6: variance 8; within: 2 in both, of which half is in a mean of two.
    known = variance_components([[1.0, 3.0], [5.0, 7.0]])
    assert known == statistics.Components(between=7.0, within=2.0)


def test_what_varies_less_than_chance_has_no_variance_between() -> None:
    known = variance_components([[1.0, 9.0], [2.0, 8.0], [0.0, 10.0]])
    assert known is not None
    assert known.between == 0


@pytest.mark.parametrize("groups", [[], [[1.0, 2.0]], [[1.0], [2.0], [3.0]], [[1.0, 2.0], []]])
def test_variances_that_cannot_be_told_apart(groups: list[list[float]]) -> None:
    assert variance_components(groups) is None


def test_variances_of_many_groups_are_those_they_were_drawn_with() -> None:
    generator = Random(1)
    groups = []
    for _ in range(2000):
        mean = generator.gauss(0, 3)
        groups.append([generator.gauss(mean, 2) for _ in range(generator.choice([1, 2, 3]))])
    known = variance_components(groups)
    assert known is not None
    assert known.between == pytest.approx(9, rel=0.1)
    assert known.within == pytest.approx(4, rel=0.1)


# ---------------------------------------------------------------- permutation tests


def test_a_permutation_test_by_hand() -> None:
    # Of the six splits of 1, 2, 3, 4 into pairs, two are as far apart as 1, 2 and 3, 4.
    assert permutation_test([1.0, 2.0], [3.0, 4.0]) == pytest.approx(1 / 3)
    assert permutation_test([1.0, 4.0], [2.0, 3.0]) == 1.0
    assert permutation_test([1.0] * 3, [1.0] * 4) == 1.0


@given(samples, samples)
def test_exact_permutation_tests_are_scipys(first: list[float], second: list[float]) -> None:
    def difference(a: np.ndarray, b: np.ndarray, axis: int) -> np.ndarray:
        return np.mean(a, axis=axis) - np.mean(b, axis=axis)

    own = permutation_test(first, second)
    pooled = np.array([*first, *second])
    n, size = len(pooled), len(first)
    # SciPy doubles the smaller tail; ours is the share of all splits that are as far apart.
    shifts = [
        abs(fmean(pooled[list(split)]) - fmean(np.delete(pooled, list(split))))
        for split in combinations(range(n), size)
    ]
    observed = abs(fmean(first) - fmean(second))
    assert own == pytest.approx(np.mean([shift >= observed - 1e-7 for shift in shifts]))
    if len(first) == len(second):  # Then the tails are mirror images, and both are the same.
        theirs = stats.permutation_test(
            (first, second), difference, permutation_type="independent", n_resamples=10**6
        )
        assert own == pytest.approx(min(1.0, theirs.pvalue), abs=1e-9)


@given(samples, samples, st.floats(0.1, 10), st.floats(-10, 10))
def test_a_permutation_test_knows_no_unit_and_no_order(
    first: list[float], second: list[float], scale: float, shift: float
) -> None:
    p = permutation_test(first, second)
    assert permutation_test(second, first) == p
    if pvariance([*first, *second]) > 1e-6:
        a, b = ([scale * value + shift for value in part] for part in (first, second))
        assert permutation_test(a, b) == pytest.approx(p)
    assert smallest_p(len(first), len(second)) <= p + 1e-12 <= 1 + 1e-9


def test_a_sampled_test_is_near_the_exact_one_and_never_nought() -> None:
    generator = Random(3)
    first = [generator.gauss(0, 1) for _ in range(8)]
    second = [generator.gauss(1, 1) for _ in range(8)]
    exact = permutation_test(first, second)
    sampled = permutation_test(first, second, most=10)
    assert sampled == pytest.approx(exact, abs=0.01)
    assert sampled == permutation_test(first, second, most=10)
    assert permutation_test([0.0] * 40, [1.0] * 40, samples=99) == 0.01


def test_too_few_numbers_can_never_differ() -> None:
    assert smallest_p(3, 3) == pytest.approx(0.1)
    assert smallest_p(4, 4) == pytest.approx(2 / 70)
    assert smallest_p(2, 5) == pytest.approx(1 / 21)
    assert permutation_test([0.0, 1.0, 2.0], [7.0, 8.0, 9.0]) == pytest.approx(0.1)


def test_a_test_without_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match="both sides"):
        permutation_test([], [1.0])


# ---------------------------------------------------------------- Holm, ranks, tau


def test_holm_by_hand() -> None:
    # 0.01 x 4; 0.02 x 3; 0.03 x 2, but no less than the one before; 0.5 x 1.
    corrected = holm({"a": 0.03, "b": 0.01, "c": 0.5, "d": 0.02})
    assert corrected == pytest.approx({"a": 0.06, "b": 0.04, "c": 0.5, "d": 0.06})
    assert holm({}) == {}


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_only_raises_and_keeps_the_order(p_values: list[float]) -> None:
    given_values = dict(enumerate(p_values))
    corrected = holm(given_values)
    assert list(corrected) == list(given_values)
    for a, b in combinations(given_values, 2):
        if given_values[a] < given_values[b]:
            assert corrected[a] <= corrected[b]
    for key, p in given_values.items():
        assert p <= corrected[key] <= min(1.0, len(p_values) * p)


def test_ranks_are_shared_by_what_cannot_be_told_apart() -> None:
    means = {"good": 1.0, "fair": 1.1, "bad": 2.0}
    told = {("good", "bad"): 0.01, ("bad", "fair"): 0.02, ("good", "fair"): 0.6}
    assert rank_ranges(means, told) == {"good": (1, 2), "fair": (1, 2), "bad": (3, 3)}
    assert set(rank_ranges(means, {}).values()) == {(1, 3)}


@given(st.lists(values, min_size=1, max_size=6, unique=True), st.randoms(use_true_random=False))
def test_rank_ranges_hold_the_rank_of_the_means(means: list[float], generator: Random) -> None:
    named = dict(enumerate(means))
    told = {pair: generator.choice([0.01, 0.5]) for pair in combinations(named, 2)}
    for key, (best, worst) in rank_ranges(named, told).items():
        assert 1 <= best <= 1 + sum(other < named[key] for other in means) <= worst <= len(means)
    certain = rank_ranges(named, dict.fromkeys(told, 0.0))
    assert all(best == worst for best, worst in certain.values())


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=12))
def test_kendalls_tau_is_scipys(pairs: list[tuple[int, int]]) -> None:
    first, second = zip(*pairs, strict=True)
    own, theirs = kendall_tau(first, second), float(np.asarray(stats.kendalltau(first, second))[0])
    assert own is None if math.isnan(theirs) else own == pytest.approx(theirs)


def test_kendalls_tau_by_hand() -> None:
    assert kendall_tau([1, 2, 3], [1, 2, 3]) == 1
    assert kendall_tau([1, 2, 3], [3, 2, 1]) == -1
    assert kendall_tau([1, 2, 3, 4], [1, 2, 4, 3]) == pytest.approx(4 / 6)
    assert kendall_tau([1, 1], [1, 2]) is None
    with pytest.raises(ValueError, match="same things"):
        kendall_tau([1], [1, 2])


# ---------------------------------------------------------------- power


@pytest.mark.parametrize("freedom", [1, 2, 5, 18, 200])
@pytest.mark.parametrize("shift", [0.0, 1.0, 3.0])
def test_the_tails_of_t_are_scipys(freedom: int, shift: float) -> None:
    for t in (0.3, 1.0, 2.5, 6.0, 20.0):
        expected = stats.nct.sf(t, freedom, shift) + stats.nct.cdf(-t, freedom, shift)
        assert t_tail(t, freedom, shift) == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize("freedom", [1, 3, 8, 38])
@pytest.mark.parametrize("level", [0.05, 0.005])
def test_the_quantiles_of_t_are_scipys(freedom: int, level: float) -> None:
    expected = stats.t.ppf(1 - level / 2, freedom)
    assert t_quantile(level, freedom) == pytest.approx(expected, rel=1e-4)


def test_the_power_is_that_of_simulated_permutation_tests() -> None:
    generator = Random(7)
    n, difference, found = 8, 1.5, 0
    for _ in range(200):
        first = [generator.gauss(0, 1) for _ in range(n)]
        second = [generator.gauss(difference, 1) for _ in range(n)]
        found += permutation_test(first, second) < 0.05
    assert power(difference, 1.0, n) == pytest.approx(found / 200, abs=0.06)


def test_more_numbers_on_one_side_alone_help() -> None:
    generator = Random(8)
    few, many, difference, shown = 5, 15, 1.5, 0
    for _ in range(200):
        first = [generator.gauss(0, 1) for _ in range(few)]
        second = [generator.gauss(difference, 1) for _ in range(many)]
        shown += permutation_test(first, second, samples=1000) < 0.05
    both = power(difference, 1.0, few, other=many)
    assert both == pytest.approx(shown / 200, abs=0.06)
    assert power(difference, 1.0, few) < both < power(difference, 1.0, many)
    assert both == power(difference, 1.0, many, other=few)
    # Three against three can show nothing, three against twenty can.
    assert detectable(3, 1.0) is None
    least = detectable(3, 1.0, other=20)
    assert least is not None
    assert power(least, 1.0, 3, other=20) == pytest.approx(0.8, abs=1e-3)
    assert needed(1.0, 1.0, times=3.0) == 11


def test_known_powers() -> None:
    # As tables of the two-sample t-test have it: 17 a side for an effect of 1, 64 for a half.
    assert (needed(1.0, 1.0), needed(0.5, 1.0)) == (17, 64)
    # The spread of random DARTS cells, in points.
    assert [needed(points, 0.23) for points in (0.3, 0.2, 0.1)] == [11, 22, 85]
    assert power(0.0, 1.0, 10) == pytest.approx(0.05, abs=1e-5)
    assert needed(1e-9, 1.0, most=1000) is None


def test_three_a_side_show_nothing() -> None:
    assert power(100.0, 1.0, 3) == 0
    assert detectable(3, 1.0) is None
    assert detectable(4, 1.0) is not None
    assert detectable(4, 1.0, level=0.05 / 3) is None
    assert needed(100.0, 1.0) == 4


@settings(max_examples=15)
@given(st.integers(4, 60), st.floats(0.01, 5))
def test_what_is_detectable_has_the_wanted_power(n: int, deviation: float) -> None:
    difference = detectable(n, deviation)
    assert difference is not None
    assert power(difference, deviation, n) == pytest.approx(0.8, abs=1e-3)
    assert needed(difference * 1.001, deviation) == n


def test_without_any_spread_every_difference_shows() -> None:
    assert detectable(5, 0.0) == 0
    assert power(0.1, 0.0, 5) == 1

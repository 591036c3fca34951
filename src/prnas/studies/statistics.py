"""Statistics of independent numbers, as pure functions: no torch, no numpy, no state.

A number here stands for a whole search: the mean over the trainings of what it found. Trainings of
one search are not independent of each other, so they never count as several numbers.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from operator import itemgetter
from random import Random
from statistics import fmean, stdev, variance
from typing import TypeVar

MOST_EXACT = 200_000  # Ways to split the numbers up to which a permutation test tries them all.
SAMPLES = 20_000  # Random splits of a larger one.
MOST_CACHED = 2**22  # Positions in random splits that are cached for the next pair: some 40 MB.
RESAMPLES = 10_000  # Samples of a bootstrap.
LEVEL = 0.05
POWER = 0.8
_NODES = 240  # Nodes of each integral: an even number.
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean and spread of a sample. What one number cannot tell is `None`."""

    n: int
    mean: float
    deviation: float | None
    interval: tuple[float, float] | None  # Confidence interval of the mean, by bootstrap.


def summary(values: Sequence[float], level: float = LEVEL, seed: int = 0) -> Summary:
    """Mean, standard deviation (of a sample) and bootstrap interval."""
    if not values:
        raise ValueError("a summary needs at least one number")
    if len(values) == 1:
        return Summary(1, values[0], None, None)
    interval = bootstrap_interval(values, level, seed)
    return Summary(len(values), fmean(values), stdev(values), interval)


def bootstrap_interval(
    values: Sequence[float], level: float = LEVEL, seed: int = 0, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """An interval that covers the mean with probability 1 - `level`.

    The plain percentile interval is too narrow for few numbers. So its tails are those of Student's
    t, and wider by sqrt(n / (n - 1)): Hesterberg's expanded percentiles (2015).
    """
    n = len(values)
    if n < 2:
        raise ValueError("an interval needs at least two numbers")
    generator = Random(seed)
    means = sorted(math.fsum(generator.choices(values, k=n)) / n for _ in range(resamples))
    tail = _below(-math.sqrt(n / (n - 1)) * t_quantile(level, n - 1))
    return _percentile(means, tail), _percentile(means, 1 - tail)


def _percentile(ordered: Sequence[float], share: float) -> float:
    """Linear between the order statistics."""
    position = share * (len(ordered) - 1)
    below = min(math.floor(position), len(ordered) - 2)
    fraction = position - below
    return ordered[below] * (1 - fraction) + ordered[below + 1] * fraction


@dataclass(frozen=True, slots=True)
class Components:
    """Variances between searches and within them: of what was found, and of training it anew."""

    between: float
    within: float


def variance_components(groups: Sequence[Sequence[float]]) -> Components | None:
    """The variances between and within searches' groups of trainings; `None` if inseparable.

    The method of moments for random effects: the means of n trainings vary by the variance between
    searches plus a part of the variance within. An estimate below 0 is 0.
    """
    repeated = [group for group in groups if len(group) > 1]
    filled = [group for group in groups if group]
    if not repeated or len(filled) < 2:
        return None
    freedom = sum(len(group) - 1 for group in repeated)
    within = math.fsum(variance(group) * (len(group) - 1) for group in repeated) / freedom
    share = fmean(1 / len(group) for group in filled)
    between = variance([fmean(group) for group in filled]) - share * within
    return Components(max(0.0, between), within)


def permutation_test(
    first: Sequence[float],
    second: Sequence[float],
    seed: int = 0,
    most: int = MOST_EXACT,
    samples: int = SAMPLES,
) -> float:
    """The two-sided p-value of a difference of the means, under all splits of the numbers.

    With more than `most` splits, `samples` random ones, and the real one counted among them: then
    the p-value is a little too large, never too small.
    """
    if not first or not second:
        raise ValueError("a permutation test needs numbers on both sides")
    pooled = [*first, *second]
    n, size = len(pooled), len(first)
    total = math.fsum(pooled)
    # A difference of the means is a shift of the first sum against its share of the total.
    expected = total * size / n
    observed = abs(math.fsum(first) - expected)
    least = observed - 1e-9 * max(1e-300, math.fsum(abs(value) for value in pooled))
    if math.comb(n, size) <= most:
        splits = combinations(pooled, size)
        extreme = sum(abs(sum(split) - expected) >= least for split in splits)
        return extreme / math.comb(n, size)
    cached = samples * size <= MOST_CACHED
    splits = (_cached_splits if cached else _random_splits)(n, size, samples, seed)
    extreme = sum(abs(sum(split(pooled)) - expected) >= least for split in splits)
    return (extreme + 1) / (samples + 1)


Split = Callable[[Sequence[float]], Sequence[float]]


def _random_splits(n: int, size: int, samples: int, seed: int) -> Iterator[Split]:
    """Functions that choose `size` of `n` numbers at random."""
    generator = Random(seed)
    for _ in range(samples):
        positions = generator.sample(range(n), size)
        # For a single position, itemgetter would return the number itself.
        yield (
            itemgetter(*positions)
            if size > 1
            else itemgetter(slice(positions[0], positions[0] + 1))
        )


@lru_cache(maxsize=4)
def _cached_splits(n: int, size: int, samples: int, seed: int) -> tuple[Split, ...]:
    """The same, drawn once for all pairs of rows that have as many numbers."""
    return tuple(_random_splits(n, size, samples, seed))


def smallest_p(first: int, second: int) -> float:
    """The least p-value that a permutation test of so many numbers can have."""
    return (2 if first == second else 1) / math.comb(first + second, first)


def holm(p_values: Mapping[K, float]) -> dict[K, float]:
    """The p-values after Holm's correction for their number: what is below 5 % may be believed."""
    corrected: dict[K, float] = {}
    largest = 0.0
    for index, key in enumerate(sorted(p_values, key=lambda key: p_values[key])):
        largest = max(largest, min(1.0, (len(p_values) - index) * p_values[key]))
        corrected[key] = largest
    return {key: corrected[key] for key in p_values}


def rank_ranges(
    means: Mapping[K, float], p_values: Mapping[tuple[K, K], float], level: float = LEVEL
) -> dict[K, tuple[int, int]]:
    """The best and the worst rank that each may have; the least mean is the best.

    `p_values` are the corrected ones of pairs, in either order. A rank is only as certain as the
    differences are significant: those that cannot be told apart share their ranks.
    """

    def differ(a: K, b: K) -> bool:
        return p_values.get((a, b), p_values.get((b, a), 1.0)) < level

    ranges: dict[K, tuple[int, int]] = {}
    for key, mean in means.items():
        others = [other for other in means if other != key and differ(key, other)]
        better = sum(means[other] < mean for other in others)
        worse = sum(means[other] > mean for other in others)
        ranges[key] = (1 + better, len(means) - worse)
    return ranges


def kendall_tau(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Kendall's tau-b of two orders of the same things, from -1 to 1; ties are accounted for.

    `None` if one of them is all ties.
    """
    if len(first) != len(second):
        raise ValueError(f"two orders of the same things, got {len(first)} and {len(second)}")
    score = of_first = of_second = 0
    for a, b in _pairs(list(zip(first, second, strict=True))):
        x, y = _sign(a[0] - b[0]), _sign(a[1] - b[1])
        score += x * y
        of_first += abs(x)
        of_second += abs(y)
    return score / math.sqrt(of_first * of_second) if of_first and of_second else None


def _pairs(things: Sequence[K]) -> Iterator[tuple[K, K]]:
    return combinations(things, 2)


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


# ---------------------------------------------------------------- Student's t, and power


def t_tail(t: float, freedom: int, shift: float = 0.0) -> float:
    """The probability that |T| exceeds `t`, for T of the noncentral t distribution.

    T = (Z + shift) / S, with a standard normal Z and S the root of a mean of `freedom` squares of
    such: the integral over S of the normal's tails.
    """
    high = 1 + 10 / math.sqrt(freedom)  # The density of S beyond is below any that matters.
    low = max(0.0, 1 - 10 / math.sqrt(freedom))
    log_constant = math.log(2) + freedom / 2 * math.log(freedom / 2) - math.lgamma(freedom / 2)

    def integrand(s: float) -> float:
        if s <= 0:
            density = math.exp(log_constant) if freedom == 1 else 0.0
        else:
            density = math.exp(log_constant + (freedom - 1) * math.log(s) - freedom * s * s / 2)
        return density * (_below(shift - t * s) + _below(-shift - t * s))

    # Where t is large, all of the integral is near 0.
    cut = min(high, max(low, (7 + abs(shift)) / max(t, 1e-9)))
    return min(1.0, _simpson(integrand, low, cut) + _simpson(integrand, cut, high))


def _below(z: float) -> float:
    """The standard normal distribution's probability of less than `z`."""
    return math.erfc(-z / math.sqrt(2)) / 2


def _simpson(function: Callable[[float], float], low: float, high: float) -> float:
    width = (high - low) / _NODES
    ends = function(low) + function(high)
    odd = math.fsum(function(low + i * width) for i in range(1, _NODES, 2))
    even = math.fsum(function(low + i * width) for i in range(2, _NODES, 2))
    return width / 3 * (ends + 4 * odd + 2 * even)


@lru_cache(maxsize=256)
def t_quantile(level: float, freedom: int) -> float:
    """The value that |T| of Student's t exceeds with probability `level`."""
    return _solved(lambda t: t_tail(t, freedom) - level, 0.0, 10.0)


def power(
    difference: float, deviation: float, n: int, level: float = LEVEL, other: int | None = None
) -> float:
    """The probability that a difference of two means of `n` and `other` numbers is significant.

    Without `other`, both have `n` numbers. By the t-test with equal spreads, which the permutation
    test comes close to; but 0 where there are so few numbers that no permutation test can be
    significant.
    """
    other = n if other is None else other
    if min(n, other) < 2 or smallest_p(n, other) > level:
        return 0.0
    if deviation <= 0:
        return 1.0 if difference else level
    freedom = n + other - 2
    shift = abs(difference) / deviation * math.sqrt(n * other / (n + other))
    return t_tail(t_quantile(level, freedom), freedom, shift)


def detectable(
    n: int,
    deviation: float,
    level: float = LEVEL,
    wanted: float = POWER,
    other: int | None = None,
) -> float | None:
    """The least difference that `n` and `other` numbers show with the wanted power, if any."""
    other = n if other is None else other
    if min(n, other) < 2 or smallest_p(n, other) > level:
        return None
    if deviation <= 0:
        return 0.0
    return deviation * _solved(lambda share: wanted - power(share, 1.0, n, level, other), 0.0, 4.0)


def needed(
    difference: float,
    deviation: float,
    level: float = LEVEL,
    wanted: float = POWER,
    most: int = 100_000,
    times: float = 1.0,
) -> int | None:
    """The least n that shows a difference with the wanted power; `None`: beyond `most`.

    The other side has `times` as many numbers.
    """

    def power_of(n: int) -> float:
        return power(difference, deviation, n, level, round(times * n))

    low, high = 1, 2
    while power_of(high) < wanted:
        low, high = high, 2 * high
        if low > most:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if power_of(middle) < wanted:
            low = middle
        else:
            high = middle
    return high


def _solved(falling: Callable[[float], float], low: float, high: float) -> float:
    """The zero of a falling function; `high` is only a first guess."""
    while falling(high) > 0:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        if falling(middle) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2

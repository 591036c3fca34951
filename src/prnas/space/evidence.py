"""Estimates: the mean of a sample, its standard error, and the p-value of a difference."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import atan2, cos, erfc, fsum, inf, pi, sin, sqrt

LEVEL = 0.05  # a difference is beyond chance if chance alone brings one as large less often
_NORMAL_FROM = 4000  # degrees of freedom from which Student's t is taken as the normal distribution


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean of a sample, and its standard error; that of a single number is unknown: 0."""

    mean: float
    error: float
    number: int

    @property
    def p(self) -> float:
        """The probability of a mean this far from 0 by chance alone: Student's t, two-sided."""
        if self.number < 2:
            return 1.0
        if self.error == 0:
            return 1.0 if self.mean == 0 else 0.0
        return t_tails(self.mean / self.error, self.number - 1)

    @property
    def beyond_chance(self) -> bool:
        return self.p < LEVEL


def estimate(sample: Sequence[float]) -> Estimate:
    """Mean and standard error of independent numbers."""
    number = len(sample)
    if not number:
        raise ValueError("a mean needs at least one number")
    mean = fsum(sample) / number
    if number == 1:
        return Estimate(mean, 0.0, 1)
    variance = fsum((value - mean) ** 2 for value in sample) / (number - 1)
    return Estimate(mean, sqrt(variance / number), number)


def difference(first: Sequence[float], second: Sequence[float]) -> Estimate:
    """The mean of `first` less that of `second`, paired: both are of the same images, in order."""
    return estimate([a - b for a, b in zip(first, second, strict=True)])


def t_tails(t: float, freedom: int) -> float:
    """The probability that Student's t is further from 0 than `t`.

    The finite series for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).
    """
    if t in (inf, -inf):
        return 0.0
    if freedom >= _NORMAL_FROM:
        return erfc(abs(t) / sqrt(2))
    angle = atan2(abs(t), sqrt(freedom))
    square = cos(angle) ** 2
    odd = freedom % 2 == 1
    term = cos(angle) if odd else 1.0
    terms: list[float] = []
    for k in range(3 if odd else 2, freedom + 1, 2):
        terms.append(term)
        term *= square * (k - 1) / k
    total = sin(angle) * fsum(terms)
    within = 2 / pi * (angle + total) if odd else total
    return min(max(1 - within, 0.0), 1.0)

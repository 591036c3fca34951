"""Scores: how the architecture weights of an edge judge its candidates.

A score is a number of at least 0 for each candidate, from their architecture weights alone.
Candidates of the lowest scores are pruned, parents are drawn in proportion to their scores, and the
genotype keeps the operations and edges of the highest.
"""

from collections.abc import Callable, Sequence
from math import exp, isfinite

Scores = Callable[[Sequence[float]], list[float]]


def softmax(weights: Sequence[float]) -> list[float]:
    """The probabilities of candidates from their architecture weights."""
    top = max(weights)
    powers = [exp(weight - top) for weight in weights]
    total = sum(powers)
    return [power / total for power in powers]


def exponential(weights: Sequence[float]) -> list[float]:
    """The scores of candidates whose weights are logarithms of these."""
    return [exp(weight) for weight in weights]


def identity(weights: Sequence[float]) -> list[float]:
    """The scores of candidates whose weights are scores themselves."""
    return list(weights)


def checked_scores(scores: Scores, weights: Sequence[float], size: int) -> list[float]:
    """The scores of `size` candidates; a `ValueError` for weights or scores that are none."""
    if len(weights) != size:
        raise ValueError(f"{size} candidates need {size} architecture weights, got {len(weights)}")
    if not all(map(isfinite, weights)):
        raise ValueError(f"architecture weights must be finite, got {list(weights)}")
    values = scores(weights)
    if len(values) != size or not all(isfinite(value) and value >= 0 for value in values):
        raise ValueError(f"scores must be finite and at least 0, one a candidate, got {values}")
    return values


def as_probabilities(scores: Sequence[float]) -> list[float]:
    """Scores divided by their sum; scores that are probabilities already stay as they are."""
    total = sum(scores)
    if abs(total - 1) < 1e-9:
        return list(scores)
    return [score / total if total else 1 / len(scores) for score in scores]

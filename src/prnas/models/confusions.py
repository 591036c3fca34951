"""The mistakes in a confusion matrix, the most frequent first."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Confusion:
    """Images of one class that were taken for another; `share` is that of the class's images."""

    true: int
    predicted: int
    count: int
    share: float


def confusions(counts: Sequence[Sequence[int]], most: int) -> tuple[Confusion, ...]:
    """The largest confusions first; `counts` has a row for each true class."""
    pairs = [
        Confusion(true, predicted, count, count / sum(row))
        for true, row in enumerate(counts)
        for predicted, count in enumerate(row)
        if count and predicted != true
    ]
    pairs.sort(key=lambda pair: (-pair.count, -pair.share))
    return tuple(pairs[:most])

"""Numbers in columns, as many as a terminal has room for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

GAP = 2
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """`rank` says which columns go first when a terminal is narrow: the highest.

    `cell` is the text for a record and the number of epochs that it is one of.
    """

    heading: str
    width: int
    rank: int
    cell: Callable[[T, int], str]


def fitting(columns: Sequence[Column[T]], width: int) -> list[Column[T]]:
    """The columns that a terminal of that width has room for."""
    left = list(columns)
    while len(left) > 1 and sum(one.width + GAP for one in left) - GAP > width:
        left.remove(max(left, key=lambda one: one.rank))
    return left


def headings(columns: Sequence[Column[T]]) -> str:
    return _aligned([(one.heading, one.width) for one in columns])


def row(columns: Sequence[Column[T]], record: T, epochs: int) -> str:
    return _aligned([(one.cell(record, epochs), one.width) for one in columns])


def _aligned(cells: Sequence[tuple[str, int]]) -> str:
    return (" " * GAP).join(text.rjust(width) for text, width in cells)

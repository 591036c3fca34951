"""Epochs as rows of a table, with as many columns as a terminal has room for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prnas.runs.events import RunStart
from prnas.runs.records import EpochRecord
from prnas.terminal.amounts import duration, exact_percent, memory, percent, rate, speed

GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """`rank` says which columns go first when a terminal is narrow: the highest.

    `cell` is the text for a record and the number of epochs that it is one of.
    """

    heading: str
    width: int
    rank: int
    cell: Callable[[EpochRecord, int], str]


def fitting(columns: Sequence[Column], width: int) -> list[Column]:
    """The columns that a terminal of that width has room for."""
    left = list(columns)
    while len(left) > 1 and sum(column.width + GAP for column in left) - GAP > width:
        left.remove(max(left, key=lambda column: column.rank))
    return left


def headings(columns: Sequence[Column]) -> str:
    return _aligned([(column.heading, column.width) for column in columns])


def row(columns: Sequence[Column], record: EpochRecord, epochs: int) -> str:
    return _aligned([(column.cell(record, epochs), column.width) for column in columns])


def _aligned(cells: Sequence[tuple[str, int]]) -> str:
    return (" " * GAP).join(text.rjust(width) for text, width in cells)


def _loss(record: EpochRecord, _: int) -> str:
    """Of the images that trained the weights."""
    return f"{next(iter(record.scores.values())).loss:.4f}"


def _accuracy(record: EpochRecord, name: str) -> str:
    score = record.scores.get(name)
    return percent(score.accuracy if score else None)


def _architecture(record: EpochRecord, _: int) -> str:
    return "grace" if record.grace else _accuracy(record, "architecture")


def _test_error(record: EpochRecord, _: int) -> str:
    test = record.scores.get("test")
    return exact_percent(1 - test.accuracy) if test else "-"


_LOSS = Column("loss", 6, 2, _loss)
_BATCH = Column("batch", 5, 7, lambda record, _: str(record.batch))
_MACHINE = (
    Column("img/s", 6, 5, lambda record, _: speed(record.images_per_second)),
    Column("memory", 7, 4, lambda record, _: memory(record.memory)),
    Column("time", 8, 1, lambda record, _: duration(record.seconds)),
)
# Together they take 80 columns, the width that every terminal has.
SEARCH = (
    Column("epoch", 5, 0, lambda record, epochs: f"{record.epoch + 1}/{epochs}"),
    _LOSS,
    Column("weights", 7, 1, lambda record, _: _accuracy(record, "weights")),
    Column("arch", 6, 3, _architecture),
    Column("valid", 6, 0, lambda record, _: _accuracy(record, "validation")),
    Column("lr", 6, 8, lambda record, _: rate(record.lr)),
    _BATCH,
    *_MACHINE,
)
TRAINING = (
    Column("epoch", 9, 0, lambda record, epochs: f"{record.epoch + 1}/{epochs}"),
    _LOSS,
    Column("training", 8, 1, lambda record, _: _accuracy(record, "training")),
    Column("test error", 10, 0, _test_error),
    Column("lr", 6, 6, lambda record, _: rate(record.lr)),
    _BATCH,
    *_MACHINE,
)


def columns_for(start: RunStart, width: int) -> list[Column]:
    """The columns of a run's epochs in a terminal of that width."""
    return fitting(SEARCH if start.is_search else TRAINING, width)

"""Epochs as rows of a table, with as many columns as a terminal has room for."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prnas.runs.events import RunStart
from prnas.runs.records import EpochRecord
from prnas.terminal.amounts import duration, exact_percent, memory, percent, rate, speed

GAP = "  "


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `cell` makes its text from an epoch's record and the cycle's number of epochs.

    Where a terminal is too narrow, the columns with the highest `rank` are left out.
    """

    heading: str
    width: int
    rank: int
    cell: Callable[[EpochRecord, int], str]


def headings(columns: Iterable[Column]) -> str:
    return GAP.join(column.heading.rjust(column.width) for column in columns)


def row(columns: Iterable[Column], record: EpochRecord, epochs: int) -> str:
    return GAP.join(column.cell(record, epochs).rjust(column.width) for column in columns)


def _accuracy(record: EpochRecord, name: str) -> str:
    score = record.scores.get(name)
    return percent(score.accuracy if score else None)


def _architecture(record: EpochRecord, _: int) -> str:
    return "grace" if record.grace else _accuracy(record, "architecture")


def _test_error(record: EpochRecord, _: int) -> str:
    test = record.scores.get("test")
    return exact_percent(1 - test.accuracy) if test else "-"


# The first score is of the images that trained the weights.
_LOSS = Column("loss", 6, 2, lambda record, _: f"{next(iter(record.scores.values())).loss:.4f}")
_BATCH = Column("batch", 5, 7, lambda record, _: str(record.batch))
_MACHINE = (
    Column("img/s", 6, 5, lambda record, _: speed(record.images_per_second)),
    Column("memory", 7, 4, lambda record, _: memory(record.memory)),
    Column("time", 8, 1, lambda record, _: duration(record.seconds)),
)
# Together they take 80 columns, the width that every terminal has.
SEARCH = (
    Column("epoch", 5, 0, lambda record, epochs: f"{record.epoch}/{epochs}"),
    _LOSS,
    Column("weights", 7, 1, lambda record, _: _accuracy(record, "weights")),
    Column("arch", 6, 3, _architecture),
    Column("valid", 6, 0, lambda record, _: _accuracy(record, "validation")),
    Column("lr", 6, 8, lambda record, _: rate(record.lr)),
    _BATCH,
    *_MACHINE,
)
TRAINING = (
    Column("epoch", 9, 0, lambda record, epochs: f"{record.epoch}/{epochs}"),
    _LOSS,
    Column("training", 8, 1, lambda record, _: _accuracy(record, "training")),
    Column("test error", 10, 0, _test_error),
    Column("lr", 6, 6, lambda record, _: rate(record.lr)),
    _BATCH,
    *_MACHINE,
)


# Columns of a training with validation images: their accuracy replaces the batch size.
VALIDATED = tuple(
    Column("valid", 6, 0, lambda record, _: _accuracy(record, "validation"))
    if column is _BATCH
    else column
    for column in TRAINING
)


def columns_for(start: RunStart, width: int) -> list[Column]:
    """The columns of a run's epochs that a terminal of that width has room for."""
    training = VALIDATED if start.validation_images else TRAINING
    columns = list(SEARCH if start.is_search else training)
    while len(columns) > 1 and len(headings(columns)) > width:
        columns.remove(max(columns, key=lambda column: column.rank))
    return columns

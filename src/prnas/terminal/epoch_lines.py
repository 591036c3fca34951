"""An epoch of a search in a line: columns for a terminal, and a sentence for a log."""

from prnas.runs.records import EpochRecord, Score
from prnas.terminal import columns, run_lines
from prnas.terminal.amounts import duration, memory, percent, rate, speed
from prnas.terminal.columns import Column, headings, row


def _architecture(record: EpochRecord, _: int) -> str:
    if record.architecture is None:
        return "grace" if record.grace else "-"
    return percent(record.architecture.accuracy)


def _validation(record: EpochRecord, _: int) -> str:
    return percent(record.validation.accuracy if record.validation else None)


__all__ = ["fitting", "headings", "row", "sentence"]

# Together they take 80 columns, the width that every terminal has.
COLUMNS: tuple[Column[EpochRecord], ...] = (
    Column("epoch", 5, 0, lambda one, epochs: f"{one.epoch + 1}/{epochs}"),
    Column("loss", 6, 2, lambda one, _: f"{one.weights.loss:.4f}"),
    Column("weights", 7, 1, lambda one, _: percent(one.weights.accuracy)),
    Column("arch", 6, 3, _architecture),
    Column("valid", 6, 0, _validation),
    Column("lr", 6, 7, lambda one, _: rate(one.lr)),
    Column("batch", 5, 6, lambda one, _: str(one.batch)),
    Column("img/s", 6, 5, lambda one, _: speed(one.images_per_second)),
    Column("memory", 7, 4, lambda one, _: memory(one.memory)),
    Column("time", 8, 1, lambda one, _: duration(one.seconds)),
)


def fitting(width: int) -> list[Column[EpochRecord]]:
    return columns.fitting(COLUMNS, width)


def sentence(record: EpochRecord, cycles: int, epochs: int, left: float | None) -> str:
    """The whole epoch in words, for a log."""
    scores = [
        f"cycle {record.cycle + 1}/{cycles}, epoch {record.epoch + 1}/{epochs}"
        + (" (grace)" if record.grace else "")
        + f": weights {_score(record.weights)}"
    ]
    if record.architecture is not None:
        scores.append(f"architecture {_score(record.architecture)}")
    if record.validation is not None:
        scores.append(f"validation {_score(record.validation)}")
    return run_lines.sentence(scores, record, left)


def _score(score: Score) -> str:
    return f"{percent(score.accuracy)} (loss {score.loss:.4f})"

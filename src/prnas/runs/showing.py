"""Results in words, and epochs as rows: for notebooks and frames."""

from collections.abc import Iterable, Iterator
from typing import Any

from prnas.runs.records import EpochRecord

Facts = list[tuple[str, str]]


def percent(share: float | None) -> str:
    return "not measured" if share is None else f"{100 * share:.2f} %"


def seconds(number: float) -> str:
    return f"{number:,.1f} s"


def short(kind: str, facts: Facts) -> str:
    """<SearchResult: data digits, seed 0, …>, in one line."""
    return f"<{kind}: {', '.join(f'{name} {value}' for name, value in facts)}>"


def epoch_rows(epochs: Iterable[EpochRecord]) -> Iterator[dict[str, Any]]:
    """A row for each epoch, with a column for each of its measures. Counts start at 1."""
    for record in epochs:
        row: dict[str, Any] = {
            "cycle": record.cycle,
            "epoch": record.epoch,
            "total_epoch": record.total_epoch,
            "grace": record.grace,
        }
        for name, score in record.scores.items():
            row |= {f"{name}_accuracy": score.accuracy, f"{name}_loss": score.loss}
        yield row | {
            "learning_rate": record.lr,
            "batch_size": record.batch,
            "steps": record.steps,
            "seconds": record.seconds,
            "images_per_second": record.images_per_second,
            "peak_memory": record.memory,
        }

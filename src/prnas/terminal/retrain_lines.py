"""An epoch of a training in a line, and the lines at the foot of a terminal that follow it."""

from rich.console import RenderableType

from prnas.runs.callbacks import TrainingStep, Validating
from prnas.runs.records import Score, TrainingRecord
from prnas.terminal import columns, run_lines
from prnas.terminal.amounts import duration, memory, percent, rate, speed
from prnas.terminal.columns import Column


def error(score: Score | None) -> str:
    return "-" if score is None else f"{100 * (1 - score.accuracy):.2f} %"


COLUMNS: tuple[Column[TrainingRecord], ...] = (
    Column("epoch", 9, 0, lambda one, epochs: f"{one.epoch + 1}/{epochs}"),
    Column("loss", 6, 2, lambda one, _: f"{one.training.loss:.4f}"),
    Column("training", 8, 1, lambda one, _: percent(one.training.accuracy)),
    Column("test error", 10, 0, lambda one, _: error(one.test)),
    Column("lr", 6, 5, lambda one, _: rate(one.lr)),
    Column("batch", 5, 6, lambda one, _: str(one.batch)),
    Column("img/s", 6, 4, lambda one, _: speed(one.images_per_second)),
    Column("memory", 7, 3, lambda one, _: memory(one.memory)),
    Column("time", 8, 1, lambda one, _: duration(one.seconds)),
)


def fitting(width: int) -> list[Column[TrainingRecord]]:
    return columns.fitting(COLUMNS, width)


def sentence(record: TrainingRecord, epochs: int, left: float | None) -> str:
    """The whole epoch in words, for a log."""
    scores = [
        f"epoch {record.epoch + 1}/{epochs}: training {percent(record.training.accuracy)} "
        f"(loss {record.training.loss:.4f})"
    ]
    if record.test is not None:
        scores.append(f"test error {error(record.test)} (loss {record.test.loss:.4f})")
    return run_lines.sentence(scores, record, left)


def live_view(
    title: str,
    epochs: int,
    step: TrainingStep | None,
    testing: Validating | None,
    elapsed: str,
    width: int,
) -> RenderableType:
    if step is None:
        return run_lines.line(f"{title}preparing; {elapsed}")
    return run_lines.four_lines(
        f"{title}epoch {step.epoch + 1}/{epochs}  step {step.step}",
        f"loss {step.loss:.4f}  accuracy {percent(step.accuracy)}",
        step,
        (testing, "tested") if testing else None,
        elapsed,
        width,
    )

"""What the lines of a search and of a training have in common: a sentence, and a live view."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from prnas.runs.callbacks import Step, TrainingStep, Validating
from prnas.runs.records import EpochRecord, TrainingRecord
from prnas.terminal.amounts import duration, memory, rate, speed

BAR = 40
LEAST_BAR = 8  # shorter ones say nothing


def sentence(
    scores: Sequence[str], record: EpochRecord | TrainingRecord, left: float | None
) -> str:
    """An epoch in words, for a log: its scores, then how it went."""
    parts = [
        *scores,
        f"lr {rate(record.lr)}",
        f"batch {record.batch}",
        f"{speed(record.images_per_second)} images/s",
        memory(record.memory),
        duration(record.seconds),
    ]
    if left is not None:
        parts.append(f"about {duration(left)} left")
    return ", ".join(parts)


def four_lines(
    where: str,
    scores: str,
    step: Step | TrainingStep,
    validating: tuple[Validating, str] | None,
    elapsed: str,
    width: int,
) -> RenderableType:
    """Each cut at the terminal's edge: a view that changes its height flickers.

    `validating`, if that goes on: how far, and the word for it.
    """
    if validating is None:
        bar = progress_bar(step.images, step.epoch_images, "images", width)
    else:
        progress, word = validating
        bar = progress_bar(progress.images, progress.of_images, word, width)
    left = "" if step.seconds_left is None else f", about {duration(step.seconds_left)} left"
    return Group(
        line(where, "bold"),
        bar,
        line(f"{scores}  lr {rate(step.lr)}  batch {step.batch}"),
        line(f"{elapsed}{left}  {speed(step.images_per_second)} images/s  {memory(step.memory)}"),
    )


def line(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def progress_bar(done: int, total: int, what: str, width: int) -> RenderableType:
    done = min(done, total)  # the last batch of an epoch may have more than was missing
    label = f"{done:,}/{total:,} {what}"
    bar = min(BAR, width - len(label) - 2)
    if bar < LEAST_BAR:
        return line(label)
    row = Table.grid(padding=(0, 2, 0, 0))
    row.add_row(ProgressBar(total=max(total, 1), completed=done, width=bar), label)
    return row

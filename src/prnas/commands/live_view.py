"""The lines at the foot of a terminal that follow a search."""

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from prnas.commands.amounts import duration, memory, percent, rate, speed
from prnas.config import SearchConfig
from prnas.training.callbacks import Step, Validating

BAR = 40
LEAST_BAR = 8  # shorter ones say nothing


def live_view(
    config: SearchConfig,
    pools: str,
    step: Step | None,
    validating: Validating | None,
    elapsed: str,
    width: int,
) -> RenderableType:
    """Four lines, each cut at the terminal's edge: a view that changes its height flickers."""
    if step is None:
        return line(f"preparing; {elapsed}")
    cycles = config.schedule.cycles
    where = f"cycle {step.cycle + 1}/{len(cycles)}"
    epoch = f"epoch {step.epoch + 1}/{cycles[step.cycle].epochs}"
    if step.grace:
        epoch += " (grace)"
    left = "" if step.seconds_left is None else f", about {duration(step.seconds_left)} left"
    if validating is None:
        progress = progress_bar(step.images, step.epoch_images, "images", width)
    else:
        progress = progress_bar(validating.images, validating.of_images, "validated", width)
    return Group(
        line(f"{where}  {epoch}  step {step.step}  {pools}", "bold"),
        progress,
        line(
            f"loss {step.weights_loss:.4f}  accuracy {percent(step.weights_accuracy)} weights"
            + _architecture(step)
            + f"  lr {rate(step.lr)}  batch {step.batch}"
        ),
        line(
            f"{elapsed}{left}  {speed(step.images_per_second)} images/s  {memory(step.memory)}",
        ),
    )


def _architecture(step: Step) -> str:
    accuracy = step.architecture_accuracy
    return "" if accuracy is None else f", {percent(accuracy)} architecture"


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

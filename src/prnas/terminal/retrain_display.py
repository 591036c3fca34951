"""What a person sees of a training: a live view in a terminal, a line an epoch in a log."""

from collections.abc import Callable
from time import monotonic

from rich.console import Group, RenderableType

from prnas.runs.callbacks import (
    RetrainResult,
    TrainingCallback,
    TrainingStart,
    TrainingStep,
    Validating,
)
from prnas.runs.records import BatchRecord, TrainingRecord
from prnas.terminal import retrain_lines as training_lines
from prnas.terminal.amounts import duration
from prnas.terminal.columns import headings, row
from prnas.terminal.screen import Screen


class TrainingDisplay(TrainingCallback):
    """Shows a training on standard output; `title` tells it from others, if there are any.

    `tell_end`, if set, is called with the result once the live view is gone.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        title: str = "",
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.started = False  # stays so in all processes but the first
        self._screen = Screen(quiet, clock)
        self._title = f"{title}: " if title else ""
        self.tell_end: Callable[[RetrainResult], None] | None = None
        self._clock = clock
        self._epochs = 0
        self._resumed = False
        self._began = clock()
        self._step: TrainingStep | None = None
        self._testing: Validating | None = None

    def on_start(self, start: TrainingStart) -> None:
        self.started = True
        self._epochs, self._resumed = start.config.training.epochs, start.resumed
        self._began = self._clock()
        self._screen.start(self._view)
        self._screen.put(_start_lines(start, self._title))
        if self._screen.is_live and start.epoch < self._epochs:
            self._screen.put([headings(training_lines.fitting(self._screen.width))], style="dim")

    def on_step(self, step: TrainingStep) -> None:
        self._step, self._testing = step, None
        self._screen.refresh()

    def on_validating(self, progress: Validating) -> None:
        self._testing = progress
        self._screen.refresh()

    def on_batch(self, record: BatchRecord) -> None:
        self._screen.batch(record, f"epoch {record.epoch + 1}, step {record.step + 1}")

    def on_epoch(self, record: TrainingRecord) -> None:
        self._testing = None
        if not self._screen.is_live:
            left = self._step.seconds_left if self._step else None
            self._screen.put([training_lines.sentence(record, self._epochs, left)])
            return
        columns = training_lines.fitting(self._screen.width)
        self._screen.put([row(columns, record, self._epochs)])
        self._screen.refresh(now=True)

    def on_message(self, text: str) -> None:
        self._screen.message(text)

    def on_end(self, result: RetrainResult) -> None:
        self._screen.end(lambda: self.tell_end(result) if self.tell_end else None)

    def close(self) -> None:
        self._screen.close()

    def _view(self) -> RenderableType:
        if not self._screen.is_live:
            return Group()
        elapsed = duration(self._clock() - self._began)
        return training_lines.live_view(
            self._title,
            self._epochs,
            self._step,
            self._testing,
            f"{elapsed} {'since it was resumed' if self._resumed else 'elapsed'}",
            self._screen.width,
        )


def _start_lines(start: TrainingStart, title: str) -> list[str]:
    config = start.config
    epochs = config.training.epochs
    lines = [
        f"{title}training on {config.data.name}: {start.train_images:,} images, "
        f"{start.test_images:,} to test, {epochs} {'epoch' if epochs == 1 else 'epochs'}, "
        f"seed {config.seed}",
        f"{start.device}"
        + (f", {start.world_size} processes" if start.world_size > 1 else "")
        + f"; network of {start.num_parameters:,} parameters, {start.macs / 1e6:,.1f} million "
        "multiply-accumulates an image",
    ]
    if start.folder is not None:
        lines.append(f"run folder {start.folder}")
    if start.resumed:
        place = "its end" if start.epoch >= epochs else f"epoch {start.epoch + 1}"
        lines.append(f"resumed at {place}")
    return lines

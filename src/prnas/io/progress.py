"""Progress bars on standard error, only in a terminal."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn
from rich.progress import TimeRemainingColumn as Remaining
from rich.progress import TransferSpeedColumn as Speed

# Whether bars are shown: commands set it; functions that are called from Python show none.
bars: ContextVar[bool] = ContextVar("bars", default=False)


class Bar:
    def __init__(self, progress: Progress, total: int | None, text: str) -> None:
        self._progress, self._stage = progress, text
        self._task = progress.add_task(text, total=total)

    def advance(self, number: int = 1) -> None:
        self._progress.advance(self._task, number)

    def show(self, stage: str, done: int, total: int) -> None:
        """Show how much of a stage is done; the bar starts anew with each stage."""
        if self._stage != stage:
            self._stage = stage
            self._progress.reset(self._task, description=stage, total=total)
        self._progress.update(self._task, completed=done)


@contextmanager
def bar(text: str, total: int | None, in_bytes: bool = False) -> Generator[Bar]:
    """A bar that vanishes at the end; only for commands whose standard error is a terminal."""
    columns = (DownloadColumn(), Speed()) if in_bytes else (MofNCompleteColumn(),)
    terminal = sys.stderr is not None and sys.stderr.isatty()
    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *columns,
        Remaining(),
        console=Console(stderr=True),
        transient=True,
        disable=not (terminal and bars.get()),
    )
    with progress:
        yield Bar(progress, total, text)

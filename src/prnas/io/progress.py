"""Progress bars on standard error, only in a terminal."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn
from rich.progress import TimeRemainingColumn as Remaining
from rich.progress import TransferSpeedColumn as Speed

# Whether bars are shown: commands set it; functions that are called from Python show none.
bars: ContextVar[bool] = ContextVar("bars", default=False)
Advance = Callable[..., None]


@contextmanager
def bar(text: str, total: int | None, in_bytes: bool = False) -> Generator[Advance]:
    """A bar in a terminal, which vanishes at the end; `advance(5)` moves it on by five."""
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
        yield partial(progress.advance, progress.add_task(text, total=total))

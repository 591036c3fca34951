"""Where a run is shown: a live view at the foot of a terminal, or plain lines in a log."""

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress

from rich.console import RenderableType
from rich.live import Live
from rich.text import Text

from prnas.runs.records import BatchRecord
from prnas.terminal.output import console, visible

REFRESH_SECONDS = 0.2
REASONS = {
    "start": "initial",
    "memory": "as memory allows",
    "out-of-memory": "memory ran out",
}


class Screen:
    """Standard output, as long as it can be written.

    A run goes on when its terminal or log can no longer be written; only a pipe whose reader has
    left ends it, as is the custom. `quiet` leaves all but the end out, and sends notes to standard
    error.
    """

    def __init__(self, quiet: bool, clock: Callable[[], float]) -> None:
        self.quiet, self.clock = quiet, clock
        self._lost = False
        self._live: Live | None = None
        self._refreshed = clock()

    @property
    def is_live(self) -> bool:
        return self._live is not None

    @property
    def width(self) -> int:
        assert self._live is not None
        return self._live.console.width

    def start(self, view: Callable[[], RenderableType]) -> None:
        """Show `view` all the time, if this is a terminal."""
        if self.quiet or not _is_terminal():
            return
        # No thread of its own: one that holds a lock while workers are forked may block them.
        live = Live(
            console=console(),
            auto_refresh=False,
            transient=True,
            get_renderable=view,
            redirect_stderr=sys.stderr.isatty(),
        )
        try:
            live.start()
            self._live = live
        except OSError:
            self._lost = True

    def refresh(self, now: bool = False) -> None:
        time = self.clock()
        if self._live is None or (not now and time - self._refreshed < REFRESH_SECONDS):
            return
        self._refreshed = time
        try:
            self._live.refresh()
        except OSError:
            self._lose()

    def put(self, lines: Iterable[str], style: str = "") -> None:
        """Lines that stay: above the live view, or in the log, where each is there at once."""
        if self.quiet:
            return
        for line in lines:
            text = visible(line)
            if self._live is not None:
                self.show(Text(text, style=style))
            elif not self._lost:
                try:
                    print(text, flush=True)
                except BrokenPipeError:
                    raise
                except OSError:
                    self._lost = True

    def show(self, part: RenderableType) -> None:
        """Above the live view only."""
        if self._live is None:
            return
        try:
            self._live.console.print(part)
        except OSError:
            self._lose()

    def message(self, text: str) -> None:
        if self.quiet:
            with suppress(OSError):
                print(f"note: {visible(text)}", file=sys.stderr, flush=True)
            return
        self.put([f"note: {text}"], style="yellow")

    def batch(self, record: BatchRecord, place: str) -> None:
        # A terminal shows the batch size all the time; there, only a surprise gets its own line.
        surprise = record.reason == "out-of-memory"
        if self._live is None or surprise:
            line = f"batch size {record.batch} ({REASONS[record.reason]}): {place}"
            self.put([line], style="yellow" if surprise else "")

    def end(self, tell: Callable[[], None]) -> None:
        """Close the view and tell how it ended, quiet or not."""
        self.close()
        if self._lost:
            return
        try:
            tell()
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError:
            self._lost = True

    def close(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            with suppress(OSError):
                live.stop()

    def _lose(self) -> None:
        self._lost = True
        self.close()


def _is_terminal() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")

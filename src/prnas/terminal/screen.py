"""The screen of a run: a live view at the foot of a terminal, or plain lines in a log."""

import os
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress

from rich.console import RenderableType
from rich.live import Live
from rich.text import Text

from prnas.terminal.output import console, note, visible

REFRESH_SECONDS = 0.2


class Screen:
    """Standard output, as long as it can be written; `quiet` leaves only notes and the end."""

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
        dumb = os.environ.get("TERM", "") in ("dumb", "unknown")
        if self.quiet or dumb or not sys.stdout.isatty():
            return
        # No thread of its own: one that holds a lock while workers are forked may block them.
        live = Live(
            console=console(),
            auto_refresh=False,
            transient=True,
            get_renderable=view,
            redirect_stderr=sys.stderr.isatty(),
        )
        with self._writing():
            live.start()
            self._live = live

    def refresh(self, now: bool = False) -> None:
        time = self.clock()
        if self._live is not None and (now or time - self._refreshed >= REFRESH_SECONDS):
            self._refreshed = time
            with self._writing():
                self._live.refresh()

    def put(self, lines: Iterable[str], style: str = "") -> None:
        """Lines that stay: above the live view, or in the log, where each is there at once."""
        for line in () if self.quiet else lines:
            text = visible(line)
            if self._live is not None:
                self.show(Text(text, style=style))
            elif not self._lost:
                with self._writing():
                    print(text, flush=True)

    def show(self, item: RenderableType) -> None:
        """Above the live view only."""
        if self._live is not None:
            with self._writing():
                self._live.console.print(item)

    def message(self, text: str) -> None:
        self.put([f"note: {text}"], style="yellow")
        if self.quiet:
            with suppress(OSError):
                note(text)

    def end(self, show_end: Callable[[], None]) -> None:
        """Close the view and show how it ended, quiet or not."""
        self.close()
        if not self._lost:
            with self._writing():
                show_end()
                sys.stdout.flush()

    def close(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            with suppress(OSError):
                live.stop()

    @contextmanager
    def _writing(self) -> Generator[None]:
        """Write no more after an error: a run goes on when its terminal or log is lost.

        Only a pipe whose reader has left ends the run, as is the custom.
        """
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError:
            self._lost = True
            self.close()

"""What a person sees of a search: a live view in a terminal, a line an epoch in a log."""

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from time import monotonic

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from prnas.commands import cycle_lines, epoch_lines
from prnas.commands.amounts import duration
from prnas.commands.found import show_found
from prnas.commands.live_view import live_view
from prnas.commands.output import console, visible
from prnas.config import SearchConfig
from prnas.reporting.records import BatchRecord, CycleRecord, EpochRecord
from prnas.space.cell_pools import Pools
from prnas.space.change import Change
from prnas.training.callbacks import Callback, SearchResult, Start, Step, Validating

REFRESH_SECONDS = 0.2
REASONS = {
    "start": "to begin with",
    "memory": "as memory allows",
    "out-of-memory": "memory ran out",
}


class Display(Callback):
    """Shows a search on standard output.

    `quiet` leaves all but the end out, and sends notes to standard error. The search goes on
    when its terminal or log can no longer be written; only a pipe whose reader has left ends it, as
    is the custom.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.started = False  # stays so in all processes but the first
        self._quiet = quiet
        self._clock = clock
        self._lost = False
        self._live: Live | None = None
        self._config: SearchConfig | None = None
        self._pools = ""  # in short
        self._resumed = False
        self._began = self._refreshed = clock()
        self._step: Step | None = None
        self._validating: Validating | None = None

    def on_start(self, start: Start) -> None:
        self.started = True
        self._config, self._resumed = start.config, start.resumed
        self._pools = cycle_lines.pools_in_short(start.pools)
        self._began = self._clock()
        if self._quiet:
            return
        if _is_terminal():
            self._start_live(console())
        self._put(_start_lines(start))
        if not _at_end_of_cycle(start):
            self._head(start.config, start.cycle)

    def on_step(self, step: Step) -> None:
        self._step, self._validating = step, None
        self._refresh()

    def on_validating(self, progress: Validating) -> None:
        self._validating = progress
        self._refresh()

    def on_batch(self, record: BatchRecord) -> None:
        # A terminal shows the batch size all the time; there, only a surprise gets its own line.
        if self._quiet or (self._live is not None and record.reason != "out-of-memory"):
            return
        self._put(
            [
                f"batch size {record.batch} ({REASONS[record.reason]}): "
                f"cycle {record.cycle + 1}, epoch {record.epoch + 1}, step {record.step + 1}"
            ],
            style="yellow" if record.reason == "out-of-memory" else "",
        )

    def on_epoch(self, record: EpochRecord) -> None:
        self._validating = None
        if self._quiet or self._config is None:
            return
        epochs = self._config.schedule.cycles[record.cycle].epochs
        if self._live is None:
            left = self._step.seconds_left if self._step else None
            cycles = len(self._config.schedule.cycles)
            self._put([epoch_lines.sentence(record, cycles, epochs, left)])
            return
        columns = epoch_lines.fitting(self._live.console.width)
        self._put([epoch_lines.row(columns, record, epochs)])
        self._refresh(now=True)

    def on_cycle(self, record: CycleRecord, pools: Pools) -> None:
        self._pools = cycle_lines.pools_in_short(pools)
        if self._quiet or self._config is None:
            return
        ending = cycle_lines.ending(Change.from_json(record.change), pools)
        if self._live is None:
            self._put(f"  {role}: {line}" for role, lines in ending for line in lines)
        else:
            grid = Table.grid(padding=(0, 2, 0, 0))
            grid.add_column(style="cyan", no_wrap=True)
            grid.add_column()
            for role, lines in ending:
                for place, line in enumerate(lines):
                    grid.add_row("" if place else f"  {role}", Text(visible(line)))
            self._show(grid)
        if record.cycle + 1 < len(self._config.schedule.cycles):
            self._step = None  # the next one's numbers are its own
            self._head(self._config, record.cycle + 1)
            self._refresh(now=True)

    def on_message(self, text: str) -> None:
        if self._quiet:
            with suppress(OSError):
                print(f"note: {visible(text)}", file=sys.stderr, flush=True)
            return
        self._put([f"note: {text}"], style="yellow")

    def on_end(self, result: SearchResult) -> None:
        self.close()
        if self._lost:
            return
        try:
            show_found(result)
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

    def _start_live(self, out: Console) -> None:
        # No thread of its own: one that holds a lock while workers are forked may block them.
        live = Live(
            console=out,
            auto_refresh=False,
            transient=True,
            get_renderable=self._view,
            redirect_stderr=sys.stderr.isatty(),
        )
        try:
            live.start()
            self._live = live
        except OSError:
            self._lost = True

    def _head(self, config: SearchConfig, cycle: int) -> None:
        if self._live is not None:
            self._put([""])
        self._put([cycle_lines.heading(config, cycle, self._pools)], style="bold")
        if self._live is not None:
            columns = epoch_lines.fitting(self._live.console.width)
            self._put([epoch_lines.headings(columns)], style="dim")

    def _view(self) -> RenderableType:
        if self._live is None or self._config is None:
            return Group()
        elapsed = duration(self._clock() - self._began)
        return live_view(
            self._config,
            self._pools,
            self._step,
            self._validating,
            f"{elapsed} {'since it was resumed' if self._resumed else 'elapsed'}",
            self._live.console.width,
        )

    def _refresh(self, now: bool = False) -> None:
        time = self._clock()
        if self._live is None or (not now and time - self._refreshed < REFRESH_SECONDS):
            return
        self._refreshed = time
        try:
            self._live.refresh()
        except OSError:
            self._lose()

    def _put(self, lines: Iterable[str], style: str = "") -> None:
        """Lines that stay: above the live view, or in the log, where each is there at once."""
        for line in lines:
            text = visible(line)
            if self._live is not None:
                self._show(Text(text, style=style))
            elif not self._lost:
                try:
                    print(text, flush=True)
                except BrokenPipeError:
                    raise
                except OSError:
                    self._lost = True

    def _show(self, part: RenderableType) -> None:
        if self._live is None:
            return
        try:
            self._live.console.print(part)
        except OSError:
            self._lose()

    def _lose(self) -> None:
        self._lost = True
        self.close()


def _start_lines(start: Start) -> list[str]:
    config = start.config
    cycles, epochs = len(config.schedule.cycles), config.schedule.num_epochs
    lines = [
        f"search on {config.data.name}: {cycles} {'cycle' if cycles == 1 else 'cycles'}, "
        f"{epochs} {'epoch' if epochs == 1 else 'epochs'}, seed {config.seed}",
        f"{start.device}"
        + (f", {start.world_size} processes" if start.world_size > 1 else "")
        + f"; supernet of {start.num_parameters:,} parameters",
    ]
    if start.folder is not None:
        lines.append(f"run folder {start.folder}")
    if start.resumed:
        place = "its end" if _at_end_of_cycle(start) else f"epoch {start.epoch + 1}"
        lines.append(f"resumed at cycle {start.cycle + 1}, {place}")
    return lines


def _at_end_of_cycle(start: Start) -> bool:
    """Whether all epochs of the cycle were done already: it has only to prune, or not even that."""
    return start.epoch >= start.config.schedule.cycles[start.cycle].epochs


def _is_terminal() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")

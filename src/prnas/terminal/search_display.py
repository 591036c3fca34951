"""What a person sees of a search: a live view in a terminal, a line an epoch in a log."""

from collections.abc import Callable
from time import monotonic

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prnas.config.search import SearchConfig
from prnas.runs.callbacks import Callback, SearchResult, Start, Step, Validating
from prnas.runs.records import BatchRecord, CycleRecord, EpochRecord
from prnas.space.change import Change
from prnas.space.pools import Pools
from prnas.terminal import cycle_lines, epoch_lines
from prnas.terminal.amounts import duration
from prnas.terminal.live_view import live_view
from prnas.terminal.output import visible
from prnas.terminal.screen import Screen
from prnas.terminal.search_end import show_found


class Display(Callback):
    """Shows a search on standard output.

    `quiet` leaves all but the end out.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.started = False  # stays so in all processes but the first
        self._screen = Screen(quiet, clock)
        self._clock = clock
        self._config: SearchConfig | None = None
        self._pools = ""  # in short
        self._resumed = False
        self._began = clock()
        self._step: Step | None = None
        self._validating: Validating | None = None

    def on_start(self, start: Start) -> None:
        self.started = True
        self._config, self._resumed = start.config, start.resumed
        self._pools = cycle_lines.pools_in_short(start.pools)
        self._began = self._clock()
        self._screen.start(self._view)
        self._screen.put(_start_lines(start))
        if not _at_end_of_cycle(start):
            self._head(start.config, start.cycle)

    def on_step(self, step: Step) -> None:
        self._step, self._validating = step, None
        self._screen.refresh()

    def on_validating(self, progress: Validating) -> None:
        self._validating = progress
        self._screen.refresh()

    def on_batch(self, record: BatchRecord) -> None:
        place = f"cycle {record.cycle + 1}, epoch {record.epoch + 1}, step {record.step + 1}"
        self._screen.batch(record, place)

    def on_epoch(self, record: EpochRecord) -> None:
        self._validating = None
        if self._config is None:
            return
        epochs = self._config.schedule.cycles[record.cycle].epochs
        if not self._screen.is_live:
            left = self._step.seconds_left if self._step else None
            cycles = len(self._config.schedule.cycles)
            self._screen.put([epoch_lines.sentence(record, cycles, epochs, left)])
            return
        columns = epoch_lines.fitting(self._screen.width)
        self._screen.put([epoch_lines.row(columns, record, epochs)])
        self._screen.refresh(now=True)

    def on_cycle(self, record: CycleRecord, pools: Pools) -> None:
        self._pools = cycle_lines.pools_in_short(pools)
        if self._config is None:
            return
        ending = cycle_lines.ending(Change.from_json(record.change), pools)
        if self._screen.is_live:
            grid = Table.grid(padding=(0, 2, 0, 0))
            grid.add_column(style="cyan", no_wrap=True)
            grid.add_column()
            for role, lines in ending:
                for place, line in enumerate(lines):
                    grid.add_row("" if place else f"  {role}", Text(visible(line)))
            self._screen.show(grid)
        else:
            self._screen.put(f"  {role}: {line}" for role, lines in ending for line in lines)
        if record.cycle + 1 < len(self._config.schedule.cycles):
            self._step = None  # the next one's numbers are its own
            self._head(self._config, record.cycle + 1)
            self._screen.refresh(now=True)

    def on_message(self, text: str) -> None:
        self._screen.message(text)

    def on_end(self, result: SearchResult) -> None:
        self._screen.end(lambda: show_found(result))

    def close(self) -> None:
        self._screen.close()

    def _head(self, config: SearchConfig, cycle: int) -> None:
        if self._screen.is_live:
            self._screen.put([""])
        self._screen.put([cycle_lines.heading(config, cycle, self._pools)], style="bold")
        if self._screen.is_live:
            columns = epoch_lines.fitting(self._screen.width)
            self._screen.put([epoch_lines.headings(columns)], style="dim")

    def _view(self) -> RenderableType:
        if not self._screen.is_live or self._config is None:
            return Group()
        elapsed = duration(self._clock() - self._began)
        return live_view(
            self._config,
            self._pools,
            self._step,
            self._validating,
            f"{elapsed} {'since it was resumed' if self._resumed else 'elapsed'}",
            self._screen.width,
        )


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

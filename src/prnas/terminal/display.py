"""The display of a run: a live view in a terminal, a line an epoch in a log."""

from collections.abc import Callable
from time import monotonic

from rich.console import Group, RenderableType

from prnas.config.search import SearchConfig
from prnas.runs import certainty
from prnas.runs.events import Callback, RetrainResult, RunStart, SearchResult, StepEvent, Validating
from prnas.runs.records import (
    BatchRecord,
    CycleRecord,
    EpochRecord,
    EvaluationRecord,
    Evidence,
)
from prnas.space.change import Change
from prnas.space.pools import Pools
from prnas.terminal import cycle_lines, lines
from prnas.terminal.amounts import duration
from prnas.terminal.columns import columns_for, headings, row
from prnas.terminal.ends import show_result
from prnas.terminal.output import facts
from prnas.terminal.screen import Screen
from prnas.terminal.searcher_lines import Evaluations

REASONS = {"start": "initial", "memory": "as memory allows", "out-of-memory": "memory ran out"}


class Display(Callback):
    """Shows a run on standard output; `quiet` leaves out all but the end, which `ending` shows.

    A run with a `title` is one of several of a command, which shows their end itself.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        title: str = "",
        clock: Callable[[], float] = monotonic,
        ending: Callable[[SearchResult | RetrainResult], None] = show_result,
    ) -> None:
        self._ending = ending
        self._screen = Screen(quiet, clock)
        self._title = f"{title}: " if title else ""
        self._clock = clock
        self._start: RunStart | None = None
        self._began = clock()
        self._pools = ""
        self._step: StepEvent | None = None
        self._validating: Validating | None = None
        self._evaluations: Evaluations | None = None  # The searcher's, once it is at work.
        self._advised = False  # what would make decisions surer

    @property
    def started(self) -> bool:
        """Only in the first of several processes."""
        return self._start is not None

    def on_start(self, start: RunStart) -> None:
        self._start, self._began = start, self._clock()
        self._pools = cycle_lines.pools_in_short(start.pools) if start.pools else ""
        self._screen.start(self._view)
        self._screen.put(lines.start_lines(start, self._title))
        if not start.at_end_of_cycle:
            self._show_heading(start, start.cycle)

    def on_step(self, step: StepEvent) -> None:
        self._step, self._validating = step, None
        self._screen.refresh()

    def on_validating(self, progress: Validating) -> None:
        self._validating = progress
        self._screen.refresh()

    def on_batch(self, record: BatchRecord) -> None:
        # A terminal shows the batch size all the time; there, only a surprise gets its own line.
        surprise = record.reason == "out-of-memory"
        if surprise or not self._screen.is_live:
            cycle = f"cycle {record.cycle}, " if self._start and self._start.is_search else ""
            position = f"{cycle}epoch {record.epoch}, step {record.step}"
            line = f"batch size {record.batch} ({REASONS[record.reason]}): {position}"
            self._screen.put([line], style="yellow" if surprise else "")

    def on_epoch(self, record: EpochRecord) -> None:
        assert self._start is not None
        self._validating = None
        if self._screen.is_live:
            columns = columns_for(self._start, self._screen.width)
            epochs = self._start.epochs_of_cycles[record.cycle - 1]
            self._screen.put([row(columns, record, epochs)])
            self._screen.refresh(now=True)
        else:
            left = self._step.seconds_left if self._step else None
            self._screen.put([lines.sentence(self._start, record, left)])

    def on_evaluation(self, record: EvaluationRecord) -> None:
        assert self._start is not None
        assert isinstance(self._start.config, SearchConfig)
        if self._evaluations is None:
            self._evaluations = Evaluations(self._start.config)
        better = self._evaluations.add(record)
        if better and not self._screen.is_live:
            self._screen.put([self._evaluations.sentence()])
        self._screen.refresh()

    def on_cycle(self, record: CycleRecord, pools: Pools) -> None:
        assert self._start is not None
        self._evaluations = None
        self._pools = cycle_lines.pools_in_short(pools)
        ending = cycle_lines.ending(Change.from_json(record.change), pools, record.evidence)
        if self._screen.is_live:
            pairs = [
                ("" if number else f"  {role}", line)
                for role, texts in ending
                for number, line in enumerate(texts)
            ]
            self._screen.show(facts(pairs))
        else:
            self._screen.put(f"  {role}: {line}" for role, texts in ending for line in texts)
        if record.evidence is not None:
            self._show_evidence(record.evidence)
        if record.cycle < len(self._start.epochs_of_cycles):
            self._step = None  # Its numbers are not those of the next cycle.
            self._show_heading(self._start, record.cycle + 1)
            self._screen.refresh(now=True)

    def _show_evidence(self, evidence: Evidence) -> None:
        """Show how sure the decisions are; warn if they are not, the first time with advice."""
        assert self._start is not None
        unsure, config = certainty.at_chance(evidence), self._start.config
        assert isinstance(config, SearchConfig)
        said = f"  {certainty.in_short(evidence, config.judges_by_cells)}"
        if unsure:
            said += ": most are no better than chance"
        self._screen.put([said], style="yellow" if unsure else "")
        if unsure and not self._advised:
            advice = certainty.advice(evidence, config.architecture.mover)
            self._screen.message(f"most decisions are no better than chance. {advice}")
            self._advised = True

    def on_message(self, text: str) -> None:
        self._screen.message(text)

    def on_end(self, result: SearchResult | RetrainResult) -> None:
        self._screen.end(lambda: None if self._title else self._ending(result))

    def close(self) -> None:
        self._screen.close()

    def _show_heading(self, start: RunStart, cycle: int) -> None:
        live = self._screen.is_live
        if isinstance(start.config, SearchConfig):
            heading = cycle_lines.heading(start.config, cycle, self._pools)
            self._screen.put(["", heading] if live else [heading], style="bold")
        if live:
            columns = columns_for(start, self._screen.width)
            self._screen.put([headings(columns)], style="dim")

    def _view(self) -> RenderableType:
        if not self._screen.is_live or self._start is None:
            return Group()
        elapsed = duration(self._clock() - self._began)
        elapsed = f"{elapsed} {'since it was resumed' if self._start.resumed else 'elapsed'}"
        if self._evaluations is not None:
            return lines.evaluations_view(
                self._evaluations, self._title, elapsed, self._screen.width
            )
        return lines.live_view(
            self._start,
            self._title,
            self._pools,
            self._step,
            self._validating,
            elapsed,
            self._screen.width,
        )

"""The callbacks that keep a run's report up to date."""

from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from prnas.config.search import RunConfig
from prnas.report.page import FILE, write_page
from prnas.report.search_view import SearchView
from prnas.report.training_view import TrainingView
from prnas.report.view import RunInfo, View, sessions_of
from prnas.runs.callbacks import (
    Callback,
    RetrainResult,
    SearchResult,
    Start,
    TrainingCallback,
    TrainingStart,
)
from prnas.runs.folder import ENVIRONMENT, RECORDS
from prnas.runs.records import (
    BatchRecord,
    CycleRecord,
    EpochRecord,
    Record,
    TrainedRecord,
    TrainingRecord,
    read_records,
)
from prnas.space.pools import Pools

V = TypeVar("V", bound=View)


class _Report(Generic[V]):
    """RUN/report.html; nothing for a run without a folder.

    A report that cannot be written stops no run: `say` is told once. The records are kept as
    columns, so that an epoch's page is the same little work late in a run as early.
    """

    def __init__(self, say: Callable[[str], None], kind: Callable[[RunInfo], V]) -> None:
        self._say, self._kind = say, kind
        self._folder: Path | None = None
        self._told = False
        self.view: V | None = None

    def open(self, folder: Path | None, config: RunConfig, resumed: bool) -> None:
        if folder is not None:
            self._folder = folder
            self.safely(lambda: self._open(folder, config, resumed))

    def _open(self, folder: Path, config: RunConfig, resumed: bool) -> None:
        info = RunInfo(
            folder.resolve().name,
            str(folder),
            config.to_data(),
            sessions_of((folder / ENVIRONMENT).read_text(encoding="utf-8")),
        )
        self.view = self._kind(info)
        if resumed:
            for record in read_records(folder / RECORDS):
                self.view.add(record)
        self.write()

    def add(self, record: Record, write: bool = False) -> None:
        def act() -> None:
            if self.view is not None:
                self.view.add(record)
                if write:
                    self.write()

        self.safely(act)

    def write(self) -> None:
        if self.view is not None and self._folder is not None:
            write_page(self._folder / FILE, [self.view])

    def safely(self, act: Callable[[], None]) -> None:
        """A picture of the run is never worth the run."""
        try:
            act()
        except Exception as error:
            if not self._told:
                self._told = True
                self._say(f"cannot write the report ({error}); the run goes on without it")


class ReportCallback(Callback):
    """Writes a search's report at the start, after every epoch and cycle, and at the end."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._report = _Report(say, SearchView)

    def on_start(self, start: Start) -> None:
        self._report.open(start.folder, start.config, start.resumed)

    def on_batch(self, record: BatchRecord) -> None:
        self._report.add(record)

    def on_epoch(self, record: EpochRecord) -> None:
        self._report.add(record, write=True)

    def on_cycle(self, record: CycleRecord, pools: Pools) -> None:
        self._report.add(record, write=True)

    def on_end(self, result: SearchResult) -> None:
        def end() -> None:
            if self._report.view is not None:
                self._report.view.genotype = result.genotype
                self._report.write()

        self._report.safely(end)


class TrainingReport(TrainingCallback):
    """Writes a training's report at the start, after every epoch, and at the end."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._report = _Report(say, TrainingView)

    def on_start(self, start: TrainingStart) -> None:
        self._report.open(start.folder, start.config, start.resumed)

    def on_batch(self, record: BatchRecord) -> None:
        self._report.add(record)

    def on_epoch(self, record: TrainingRecord) -> None:
        self._report.add(record, write=True)

    def on_end(self, result: RetrainResult) -> None:
        def end() -> None:
            if self._report.view is None or result.folder is None:
                return
            for record in read_records(result.folder / RECORDS):
                if isinstance(record, TrainedRecord):
                    self._report.view.add(record)
            self._report.write()

        self._report.safely(end)

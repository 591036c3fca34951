"""The callback that keeps a run's report up to date."""

from collections.abc import Callable, Iterable
from pathlib import Path

from prnas.report.page import view_of, write_page
from prnas.report.view import RunInfo, View, sessions_of
from prnas.runs.events import Callback, RetrainResult, RunStart, SearchResult
from prnas.runs.names import ENVIRONMENT, RECORDS, REPORT
from prnas.runs.records import (
    BatchRecord,
    CycleRecord,
    EpochRecord,
    GenotypeRecord,
    Record,
    TrainedRecord,
    read_records,
)
from prnas.space.pools import Pools


class ReportCallback(Callback):
    """Writes RUN/report.html at the start, after every epoch and cycle, and at the end.

    A run without a folder has no report. One that cannot be written stops no run: `say` gets a
    single message. The records become columns at once, so that an epoch's page is the same little
    work late in a run as early.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._failed = False
        self._folder = Path()
        self._view: View | None = None

    def on_start(self, start: RunStart) -> None:
        if start.folder is not None:
            self._folder = start.folder
            self._safely(lambda: self._open(start))

    def on_batch(self, record: BatchRecord) -> None:
        self._safely(lambda: self._add([record], write=False))

    def on_epoch(self, record: EpochRecord) -> None:
        self._safely(lambda: self._add([record]))

    def on_cycle(self, record: CycleRecord, pools: Pools) -> None:
        self._safely(lambda: self._add([record]))

    def on_end(self, result: SearchResult | RetrainResult) -> None:
        def last_records() -> Iterable[Record]:
            if isinstance(result, SearchResult):
                return [GenotypeRecord(genotype=result.genotype.to_json())]
            records = read_records(self._folder / RECORDS)
            return [record for record in records if isinstance(record, TrainedRecord)]

        if self._view is not None:
            self._safely(lambda: self._add(last_records()))

    def _open(self, start: RunStart) -> None:
        environment = (self._folder / ENVIRONMENT).read_text(encoding="utf-8")
        name, config = self._folder.resolve().name, start.config.to_data()
        self._view = view_of(RunInfo(name, str(self._folder), config, sessions_of(environment)))
        self._add(read_records(self._folder / RECORDS) if start.resumed else ())

    def _add(self, records: Iterable[Record], write: bool = True) -> None:
        if self._view is None:
            return
        for record in records:
            self._view.add(record)
        if write:
            write_page(self._folder / REPORT, [self._view])

    def _safely(self, act: Callable[[], None]) -> None:
        """A picture of the run is never worth the run."""
        try:
            act()
        except Exception as error:
            if not self._failed:
                self._failed = True
                self._say(f"cannot write the report ({error}); the run goes on without it")

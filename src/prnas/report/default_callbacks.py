"""Callbacks of every run with a folder: they write TensorBoard's events and the report."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from prnas.report.page import view_of, write_page
from prnas.report.tensorboard import TensorboardCallback, available
from prnas.report.view import RunInfo, View, sessions_of
from prnas.runs import records
from prnas.runs.events import Callback, RetrainResult, RunStart, SearchResult
from prnas.runs.names import ENVIRONMENT, RECORDS, REPORT
from prnas.runs.records import BatchRecord, CycleRecord, EpochRecord, Record, read_records
from prnas.space.pools import Pools


def with_default_callbacks(callbacks: Sequence[Callback]) -> list[Callback]:
    """The callbacks, after those that write: they may speak of what was written."""

    def say(text: str) -> None:
        for callback in callbacks:
            callback.on_message(text)

    writers: list[Callback] = [ReportCallback(say)]
    if available():
        writers.append(TensorboardCallback())
    return [*writers, *callbacks]


class ReportCallback(Callback):
    """Writes RUN/report.html at the start, after every epoch and cycle, and at the end.

    A run without a folder has no report. A report that cannot be written stops no run: `say` gets
    a single message. The records become columns at once, so that a page takes no longer to make
    late in a run than early.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._failed = False
        self._folder = Path()
        self._view: View | None = None

    def on_start(self, start: RunStart) -> None:
        def open_view() -> Iterable[Record]:
            environment = (self._folder / ENVIRONMENT).read_text(encoding="utf-8")
            name, config = self._folder.resolve().name, start.config.to_data()
            self._view = view_of(RunInfo(name, str(self._folder), config, sessions_of(environment)))
            return read_records(self._folder / RECORDS) if start.resumed else ()

        if start.folder is not None:
            self._folder = start.folder
            self._add(open_view)

    def on_batch(self, record: BatchRecord) -> None:
        self._add(lambda: [record], write=False)

    def on_epoch(self, record: EpochRecord) -> None:
        self._add(lambda: [record])

    def on_cycle(self, record: CycleRecord, pools: Pools) -> None:
        self._add(lambda: [record])

    def on_end(self, result: SearchResult | RetrainResult) -> None:
        def last_records() -> Iterable[Record]:
            if isinstance(result, SearchResult):
                return [records.GenotypeRecord(genotype=result.genotype.to_json())]
            every = read_records(self._folder / RECORDS)
            return (record for record in every if isinstance(record, records.TrainedRecord))

        if self._view is not None:
            self._add(last_records)

    def _add(self, new_records: Callable[[], Iterable[Record]], write: bool = True) -> None:
        """A picture of the run is never worth the run: whatever fails is only said."""
        try:
            new = new_records()
            if self._view is None:
                return
            for record in new:
                self._view.add(record)
            if write:
                write_page(self._folder / REPORT, [self._view])
        except Exception as error:
            if not self._failed:
                self._failed = True
                self._say(f"cannot write the report ({error}); the run goes on without it")

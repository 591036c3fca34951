"""Callbacks of every run with a folder: they write TensorBoard's events and the report."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path

from prnas.report import tensorboard
from prnas.report.page import view_of, write_page
from prnas.report.view import RunInfo, View, sessions_of
from prnas.runs import records as kinds
from prnas.runs.events import Callback, RetrainResult, RunStart, SearchResult
from prnas.runs.names import ENVIRONMENT, RECORDS, REPORT, TENSORBOARD
from prnas.runs.record_lines import read_records
from prnas.runs.records import BatchRecord, CycleRecord, EpochRecord, EvaluationRecord, Record
from prnas.space.pools import Pools


def with_default_callbacks(callbacks: Sequence[Callback]) -> list[Callback]:
    """The callbacks, after those that write: they may speak of what was written."""

    def say(text: str) -> None:
        for callback in callbacks:
            callback.on_message(text)

    writers = [TensorboardCallback()] if tensorboard.available() else []
    return [ReportCallback(say), *writers, *callbacks]


class RecordsCallback(Callback, ABC):
    """Writes a run's records as they come."""

    @abstractmethod
    def write(self, records: Iterable[Record]) -> None: ...

    def on_batch(self, record: BatchRecord) -> None:
        self.write([record])

    def on_epoch(self, record: EpochRecord) -> None:
        self.write([record])

    def on_evaluation(self, record: EvaluationRecord) -> None:
        self.write([record])

    def on_cycle(self, record: CycleRecord, pools: Pools) -> None:
        self.write([record])


class ReportCallback(RecordsCallback):
    """Writes RUN/report.html at the start, after every epoch and cycle, and at the end.

    A run without a folder has no report. A report that cannot be written stops no run: `say` gets
    a single message. The records become columns at once, so that a page takes no longer to make
    late in a run than early.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._failed = say, False
        self._folder = Path()
        self._view: View | None = None

    def on_start(self, start: RunStart) -> None:
        if start.folder is None:
            return
        self._folder = start.folder
        with self._harmless():
            environment = (self._folder / ENVIRONMENT).read_text(encoding="utf-8")
            name, config = self._folder.resolve().name, start.config.to_data()
            self._view = view_of(RunInfo(name, str(self._folder), config, sessions_of(environment)))
            self.write(read_records(self._folder / RECORDS) if start.resumed else ())

    def on_evaluation(self, record: EvaluationRecord) -> None:
        """There may be thousands in a second: the page waits for the end."""
        if self._view is not None:
            with self._harmless():
                self._view.add(record)

    def on_end(self, result: SearchResult | RetrainResult) -> None:
        if isinstance(result, SearchResult):
            genotype = result.genotype.to_json()
            self.write([kinds.GenotypeRecord(genotype=genotype, fit=result.fit, next=result.next)])
        elif self._view is not None:
            with self._harmless():
                every = read_records(self._folder / RECORDS)
                self.write([record for record in every if isinstance(record, kinds.TrainedRecord)])

    def write(self, records: Iterable[Record]) -> None:
        if self._view is None:
            return
        with self._harmless():
            last = None
            for last in records:
                self._view.add(last)
            if not isinstance(last, BatchRecord):  # it is shown with its epoch
                write_page(self._folder / REPORT, [self._view])

    @contextmanager
    def _harmless(self) -> Generator[None]:
        """A picture of the run is never worth the run: whatever fails is only said."""
        try:
            yield
        except Exception as error:
            if not self._failed:
                self._failed = True
                self._say(f"cannot write the report ({error}); the run goes on without it")


class TensorboardCallback(RecordsCallback):
    """Writes RUN/tensorboard from a run's records; nothing for a run without a folder.

    A resumed run writes its records so far again, in place of all earlier points: the run's own
    records, not the event files, know what of the interrupted session still counts.
    """

    def __init__(self) -> None:
        self._writer: tensorboard.TensorboardWriter | None = None
        self._epochs_of_cycles: tuple[int, ...] = ()

    def on_start(self, start: RunStart) -> None:
        if start.folder is None:
            return
        self._epochs_of_cycles = start.epochs_of_cycles
        self._writer = tensorboard.TensorboardWriter(start.folder / TENSORBOARD)
        records = start.folder / RECORDS
        if start.resumed and records.exists():
            self.write(read_records(records))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def write(self, records: Iterable[Record]) -> None:
        if self._writer is None:
            return
        for record in records:
            if isinstance(record, EpochRecord):
                self._writer.write(tensorboard.epoch_scalars(record), record.total_epoch)
            elif isinstance(record, EvaluationRecord):
                self._writer.write(tensorboard.evaluation_scalars(record), record.number)
            elif isinstance(record, BatchRecord):
                epochs_before = sum(self._epochs_of_cycles[: record.cycle - 1])
                self._writer.write([("batch/changed", record.batch)], epochs_before + record.epoch)
            elif isinstance(record, CycleRecord):
                epochs_done = sum(self._epochs_of_cycles[: record.cycle])
                self._writer.write(tensorboard.cycle_scalars(record), epochs_done)
        self._writer.flush()

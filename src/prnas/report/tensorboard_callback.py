"""The callbacks that feed TensorBoard."""

from collections.abc import Sequence
from pathlib import Path

from prnas.report.tensorboard import FOLDER, TensorboardWriter, available
from prnas.runs.callbacks import Callback, Start, TrainingCallback, TrainingStart
from prnas.runs.folder import RECORDS
from prnas.runs.records import (
    BatchRecord,
    CycleRecord,
    EpochRecord,
    Record,
    TrainingRecord,
    read_records,
)
from prnas.space.pools import Pools


class _Feed:
    """RUN/tensorboard, fed with the run's own records; nothing for a run without a folder.

    A resumed run writes its records so far again, in place of all earlier points: the run's own
    records, not the event files, know what of the interrupted session still counts.
    """

    def __init__(self, epochs_of_cycles: Sequence[int] = ()) -> None:
        self._writer: TensorboardWriter | None = None
        self._epochs_of_cycles = epochs_of_cycles

    def start(self, folder: Path | None, resumed: bool) -> None:
        if folder is None:
            return
        self._writer = TensorboardWriter(folder / FOLDER)
        records = folder / RECORDS
        if resumed and records.exists():
            for record in read_records(records):
                self.write(record)
            self._writer.flush()

    def write(self, record: Record, flush: bool = False) -> None:
        if self._writer is None:
            return
        match record:
            case EpochRecord():
                self._writer.epoch(record)
            case TrainingRecord():
                self._writer.training(record)
            case BatchRecord():
                self._writer.batch(record, self._done(record.cycle, record.epoch))
            case CycleRecord():
                self._writer.cycle(record, self._done(record.cycle + 1, 0))
            case _:
                return
        if flush:
            self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _done(self, cycle: int, epoch: int) -> int:
        """Epochs done before an epoch of a cycle."""
        return sum(self._epochs_of_cycles[:cycle]) + epoch


class TensorboardCallback(Callback):
    """Feeds TensorBoard with a search. Needs tensorboardX."""

    def __init__(self) -> None:
        self._feed = _Feed()

    @classmethod
    def if_available(cls) -> list[Callback]:
        """The callback, or none where tensorboardX is not installed."""
        return [cls()] if available() else []

    def on_start(self, start: Start) -> None:
        self._feed = _Feed([one.epochs for one in start.config.schedule.cycles])
        self._feed.start(start.folder, start.resumed)

    def on_epoch(self, record: EpochRecord) -> None:
        self._feed.write(record, flush=True)

    def on_batch(self, record: BatchRecord) -> None:
        self._feed.write(record, flush=True)

    def on_cycle(self, record: CycleRecord, pools: Pools) -> None:
        self._feed.write(record, flush=True)

    def close(self) -> None:
        self._feed.close()


class TrainingTensorboard(TrainingCallback):
    """Feeds TensorBoard with a training. Needs tensorboardX."""

    def __init__(self) -> None:
        self._feed = _Feed()

    @classmethod
    def if_available(cls) -> list[TrainingCallback]:
        """The callback, or none where tensorboardX is not installed."""
        return [cls()] if available() else []

    def on_start(self, start: TrainingStart) -> None:
        self._feed.start(start.folder, start.resumed)

    def on_epoch(self, record: TrainingRecord) -> None:
        self._feed.write(record, flush=True)

    def on_batch(self, record: BatchRecord) -> None:
        self._feed.write(record, flush=True)

    def close(self) -> None:
        self._feed.close()

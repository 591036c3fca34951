"""The callback that feeds TensorBoard."""

from prnas.reporting.records import BatchRecord, CycleRecord, EpochRecord, Record, read_records
from prnas.reporting.tensorboard import FOLDER, TensorboardWriter, available
from prnas.space.cell_pools import Pools
from prnas.space.schedule import Schedule
from prnas.training.callbacks import Callback, Start
from prnas.training.run import RECORDS


class TensorboardCallback(Callback):
    """Writes RUN/tensorboard; nothing for a search without a folder. Needs tensorboardX.

    A resumed search writes its records so far again, in place of all earlier points: the run's own
    records, not the event files, know what of the interrupted session still counts.
    """

    def __init__(self) -> None:
        self._writer: TensorboardWriter | None = None
        self._schedule: Schedule | None = None

    @classmethod
    def if_available(cls) -> list[Callback]:
        """The callback, or none where tensorboardX is not installed."""
        return [cls()] if available() else []

    def on_start(self, start: Start) -> None:
        self._schedule = start.config.schedule
        if start.folder is None:
            return
        self._writer = TensorboardWriter(start.folder / FOLDER)
        records = start.folder / RECORDS
        if start.resumed and records.exists():
            for record in read_records(records):
                self._write(record)
            self._writer.flush()

    def on_epoch(self, record: EpochRecord) -> None:
        self._write(record, flush=True)

    def on_batch(self, record: BatchRecord) -> None:
        self._write(record, flush=True)

    def on_cycle(self, record: CycleRecord, pools: Pools) -> None:
        self._write(record, flush=True)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _write(self, record: Record, flush: bool = False) -> None:
        if self._writer is None:
            return
        match record:
            case EpochRecord():
                self._writer.epoch(record)
            case BatchRecord():
                self._writer.batch(record, self._done(record.cycle, record.epoch))
            case CycleRecord():
                self._writer.cycle(record, self._done(record.cycle + 1, 0))
            case _:
                return
        if flush:
            self._writer.flush()

    def _done(self, cycle: int, epoch: int) -> int:
        """Epochs done before an epoch of a cycle."""
        cycles = self._schedule.cycles[:cycle] if self._schedule else ()
        return sum(one.epochs for one in cycles) + epoch

"""A run's records as TensorBoard curves: every number in them, against the epochs done."""

import importlib
import importlib.util
import os
import socket
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from prnas.runs.events import Callback, RunStart
from prnas.runs.names import RECORDS, TENSORBOARD
from prnas.runs.records import BatchRecord, CycleRecord, EpochRecord, Record, read_records
from prnas.space.genotype import ROLES
from prnas.space.pools import Pools

MISSING = "TensorBoard files need tensorboardX: pip install 'prnas[tensorboard]'"
Scalar = tuple[str, float]


def available() -> bool:
    return importlib.util.find_spec("tensorboardX") is not None


class TensorboardCallback(Callback):
    """Writes RUN/tensorboard from a run's records; nothing for a run without a folder.

    A resumed run writes its records so far again, in place of all earlier points: the run's own
    records, not the event files, know what of the interrupted session still counts.
    """

    def __init__(self) -> None:
        self._writer: TensorboardWriter | None = None
        self._epochs_of_cycles: tuple[int, ...] = ()

    def on_start(self, start: RunStart) -> None:
        if start.folder is None:
            return
        self._epochs_of_cycles = start.epochs_of_cycles
        self._writer = TensorboardWriter(start.folder / TENSORBOARD)
        records = start.folder / RECORDS
        if start.resumed and records.exists():
            self._write(read_records(records))

    def on_epoch(self, record: EpochRecord) -> None:
        self._write([record])

    def on_batch(self, record: BatchRecord) -> None:
        self._write([record])

    def on_cycle(self, record: CycleRecord, pools: Pools) -> None:
        self._write([record])

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _write(self, records: Iterable[Record]) -> None:
        if self._writer is None:
            return
        for record in records:
            if isinstance(record, EpochRecord):
                self._writer.write(epoch_scalars(record), record.total_epoch + 1)
            elif isinstance(record, BatchRecord):
                epochs_done = sum(self._epochs_of_cycles[: record.cycle]) + record.epoch
                self._writer.write([("batch/changed", record.batch)], epochs_done + 1)
            elif isinstance(record, CycleRecord):
                epochs_done = sum(self._epochs_of_cycles[: record.cycle + 1])
                self._writer.write(cycle_scalars(record), epochs_done)
        self._writer.flush()


class TensorboardWriter:
    """Writes event files into `folder`; an `ImportError` says what to install.

    The step of every point is the number of epochs done; a point during an epoch counts for its
    end. TensorBoard forgets what earlier files in the folder say: a run that goes on feeds its
    records anew, so that no point is there twice. What was given is on disk after `flush`.
    """

    def __init__(self, folder: Path) -> None:
        if not available():
            raise ImportError(MISSING)
        # Imported only here: an extra, and slow. This plain writer of records writes at once; the
        # package's usual writer queues in a thread.
        self._events: Any = importlib.import_module("tensorboardX.proto.event_pb2")
        writer: Any = importlib.import_module("tensorboardX.record_writer").RecordWriter
        folder.mkdir(parents=True, exist_ok=True)
        # A name that is still free, and that sorts after those before it: TensorBoard reads so.
        number = sum(1 for _ in folder.glob("events.out.tfevents.*"))
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{number:04d}"
        self._file: Any = writer(str((folder / f"{name}.{os.getpid()}").resolve()))
        self._add(self._event(0, file_version="brain.Event:2"))
        # A session that starts at a step makes TensorBoard drop all earlier points from it on.
        start = self._events.SessionLog(status=self._events.SessionLog.START)
        self._add(self._event(0, session_log=start))
        self.flush()

    def write(self, scalars: Iterable[Scalar], step: int) -> None:
        event = self._event(step)
        for name, value in scalars:
            event.summary.value.add(tag=name, simple_value=value)
        self._add(event)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _event(self, step: int, **content: Any) -> Any:
        return self._events.Event(wall_time=time.time(), step=step, **content)

    def _add(self, event: Any) -> None:
        self._file.write(event.SerializeToString())


def epoch_scalars(record: EpochRecord) -> Iterator[Scalar]:
    for name, score in record.scores.items():
        yield f"loss/{name}", score.loss
        yield f"accuracy/{name}", score.accuracy
        yield f"images/{name}", score.images
    if record.type == "epoch":
        yield "schedule/cycle", record.cycle
        yield "schedule/epoch", record.epoch
        yield "schedule/grace", float(record.grace)
    yield "schedule/steps", record.steps
    if record.drop_path is not None:
        yield "schedule/drop_path", record.drop_path
    yield "schedule/lr", record.lr
    yield "batch/size", record.batch
    yield "speed/seconds", record.seconds
    yield "speed/images_per_second", record.images_per_second
    yield "speed/memory", record.memory
    for name, seconds in record.seconds_for.items():
        yield f"seconds/{name}", seconds


def cycle_scalars(record: CycleRecord) -> Iterator[Scalar]:
    """The statistics of a cycle's end: both cells' mean, each cell, each edge."""
    statistics = record.statistics
    yield from _numbers("average", statistics.get("average"))
    yield from _numbers("average/discoverable", statistics.get("discoverable"))
    for role in ROLES:
        cell: dict[str, Any] = statistics.get(role, {})
        yield from _numbers(role, cell.get("cell"))
        for number, edge in enumerate(cell.get("edges", [])):
            yield from _numbers(f"{role}_edges/{number:02d}", edge)


def _numbers(path: str, value: Any) -> Iterator[Scalar]:
    """Every number in nested objects, by its path; what a pool lacks is `None`."""
    if isinstance(value, dict):
        for name, inner in cast(dict[str, Any], value).items():
            yield from _numbers(f"{path}/{name}", inner)
    elif isinstance(value, int | float):
        yield path, value

"""A run's records as TensorBoard curves: every number in them, against the epochs done."""

import importlib
import importlib.util
import os
import socket
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from prnas.runs.records import OPTIONAL, CycleRecord, EpochRecord, EvaluationRecord
from prnas.space.genotype import ROLES

Scalar = tuple[str, float]


def available() -> bool:
    return importlib.util.find_spec("tensorboardX") is not None


class TensorboardWriter:
    """Writes event files into `folder`.

    The step of every point is the number of epochs done; a point during an epoch counts for its
    end. Of a searcher's evaluations, it is their number. TensorBoard forgets what earlier files in
    the folder say: a run that goes on feeds its records anew, so that no point is there twice. What
    was given is on disk after `flush`.
    """

    def __init__(self, folder: Path) -> None:
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
        self._file.close()

    def _event(self, step: int, **content: Any) -> Any:
        return self._events.Event(wall_time=time.time(), step=step, **content)

    def _add(self, event: Any) -> None:
        self._file.write(event.SerializeToString())


def epoch_scalars(record: EpochRecord) -> Iterator[Scalar]:
    for name, score in record.scores.items():
        yield f"loss/{name}", score.loss
        yield f"accuracy/{name}", score.accuracy
        yield f"images/{name}", score.images
    of_cycle = ("cycle", "epoch", "grace") if record.type == "epoch" else ()
    for name in (*of_cycle, "steps", "drop_path", "lr", "architecture_lr"):
        yield from _numbers(f"schedule/{name}", getattr(record, name))
    if record.derived is not None:
        yield from _numbers("derived/edits", record.derived.edits)
        yield from _numbers("derived/skips", record.derived.skips)
    for name in OPTIONAL:
        yield from _numbers(f"architecture/{name}", getattr(record, name))
    yield "batch/size", record.batch
    for name in ("seconds", "images_per_second", "memory"):
        yield f"speed/{name}", getattr(record, name)
    for name, seconds in record.seconds_for.items():
        yield f"seconds/{name}", seconds


def evaluation_scalars(record: EvaluationRecord) -> Iterator[Scalar]:
    """Scalars of a searcher's evaluations, by their numbers."""
    for name in ("score", "best", "images", "seconds"):
        yield f"{record.stage}/{name}", getattr(record, name)
    yield from _numbers(f"{record.stage}/entropy", record.entropy)
    yield from _numbers(f"{record.stage}/proxies", record.proxies)


def cycle_scalars(record: CycleRecord) -> Iterator[Scalar]:
    """The statistics of a cycle's end: the cells' mean, each cell, each edge."""
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

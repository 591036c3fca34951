"""The training loop shared by searches and retraining: epochs, checkpoints, resume, stop."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from prnas.data.augment import Augmentation
from prnas.data.dataset import DataSet, normalization
from prnas.data.streams import Stream
from prnas.io.memory import check_room, is_out_of_memory
from prnas.runs import faults
from prnas.runs.attempt import Outcome
from prnas.runs.batch_size import BatchSize
from prnas.runs.checkpoint import Checkpoint
from prnas.runs.context import C, RunContext
from prnas.runs.events import RunStart, StepEvent
from prnas.runs.names import RECORDS
from prnas.runs.preparation import check_same, digest_of, seed_for
from prnas.runs.record_lines import read_records
from prnas.runs.records import BatchRecord, EpochRecord, Record, Score
from prnas.runs.state import RunState, SavedState
from prnas.runs.time_left import seconds_left, speed_of

# Writing a checkpoint needs memory for about three copies of its tensors.
_CHECKPOINT_COPIES = 3
S = TypeVar("S", bound=RunState)
R = TypeVar("R")  # the result
K = TypeVar("K", bound=Record)


class Stopped(Exception):  # noqa: N818 - not an error
    """A signal stopped the run at a step's end; its state is saved in `folder`, if it has one.

    `so_far` is what can be used already of what the run makes, if anything can.
    """

    def __init__(self, folder: Path | None, number: int) -> None:
        super().__init__("the run was stopped")
        self.folder, self.number = folder, number
        self.so_far: Any = None


class Run(ABC, Generic[C, S, R]):
    """A search or a training under way. `go` continues from wherever its state stands."""

    config_type: ClassVar[type[Any]]
    weights_part: ClassVar[str]  # the part of a step whose images make up an epoch
    epoch_type: ClassVar[Literal["epoch", "training"]]  # the type of its epochs' records
    uses_test_images: ClassVar[bool] = False  # then it must not change before the run is resumed
    memory_advice: ClassVar[str]  # what a user may try when memory runs out
    not_finite_advice: ClassVar[str]  # what may help when numbers are not finite
    validation_batch = 1

    def __init__(self, context: RunContext[C], checkpoint: Checkpoint | None = None) -> None:
        """A new run, or one that goes on exactly where `checkpoint` was written."""
        self.config, self.data, self.processes = context.config, context.data, context.processes
        self.indices, self.probe, self.folder = context.indices, context.probe, context.folder
        self.callbacks, self._context = context.callbacks, context
        config, data, processes = self.config, self.data, self.processes
        self.epoch_images = len(self.indices[self.weights_part])
        used = torch.cat(list(self.indices.values())).sort().values
        self.normalization = normalization(data.train, used)
        compared = [data.train, data.test] if self.uses_test_images else [data.train]
        self.data_digest = digest_of(compared, data.class_names, self.normalization)
        if checkpoint is not None:
            check_same("data", checkpoint.state, self.data_digest)
        self.streams: dict[str, Stream] = {}
        for part, indices in self.indices.items():
            seed = seed_for(config.seed, "stream", part)
            self.streams[part] = Stream(data.train, indices, seed, processes.rank, processes.size)
        folder = self.folder
        self.batch = BatchSize(
            config.batch,
            self.probe,
            folder.log_decision if folder else lambda key, batch: None,
            lambda share: processes.maximum([share])[0],
            self.epoch_images // processes.size,
            processes.broadcast(folder.batch_decisions() if folder and context.replay else {}),
        )
        self.augmentation = Augmentation.of(config.images, self.normalization)
        self.resumed = checkpoint is not None
        self.records: list[Record] = []  # the records of a run that has no folder
        self.last_images: dict[str, Tensor] = {}  # images of the step under way, by part
        # Parts of the step, their number of images, and numbers that are still on the device.
        self._outcomes: list[tuple[str, int, Tensor]] = []
        self._readable: Sequence[str] = ()  # parts that the attempt under way may read
        self.last_save, self.save_soon = time.monotonic(), False
        self.state = self.make_state(checkpoint.state if checkpoint else None)
        self.planned_work = self.epoch_work()
        # The session's first step: its epoch, then its share of that and its seconds.
        self._first_step: tuple[int, tuple[float, float]] | None = None
        if checkpoint is not None:
            self.state.load_tensors(checkpoint.tensors)
            self.batch.load_state(checkpoint.state["batch"])
            scaler = processes.scaler
            if scaler is not None and "scaler" in checkpoint.state:
                scaler.load_state_dict(dict(checkpoint.state["scaler"]))
            for part, stream in self.streams.items():
                stream.load_state(checkpoint.state["streams"][part])

    @classmethod
    @abstractmethod
    def prepare(cls, config: C, data: DataSet, num_processes: int) -> dict[str, Tensor]:
        """The training images of each part of a step; a `UserError` if they cannot be used."""

    @classmethod
    def check_start(cls, config: C, data: DataSet) -> None:
        """A `UserError` if what only a new run needs, and a resumed one does not, is not there."""

    @classmethod
    @abstractmethod
    def image_macs(cls, config: C, data: DataSet) -> float:
        """Multiply-accumulates of the network's forward pass, for one image."""

    @abstractmethod
    def make_state(self, saved: SavedState | None) -> S:
        """The first state, or that of a checkpoint's plain data, before its tensors are loaded."""

    @abstractmethod
    def finish(self) -> None:
        """All that is left of the run."""

    @abstractmethod
    def take_step(self) -> None:
        """One step: all its parts."""

    @property
    @abstractmethod
    def lr(self) -> float:
        """The learning rate of the network's weights."""

    @property
    def grace(self) -> bool:
        """Whether this epoch of a search trains the network's weights only."""
        return False

    @property
    def ends_early(self) -> bool:
        """Whether no step is to follow, although the epoch is not over."""
        return False

    @property
    def budget_used(self) -> float | None:
        """The share of a budget that is used, if a budget bounds the run."""
        return None

    @property
    def drop_path(self) -> float | None:
        """The drop-path probability of a retraining."""
        return None

    @abstractmethod
    def validate(self) -> dict[str, Score]:
        """Scores that are measured at the end of an epoch, if they are due, by name."""

    def conclude_epoch(self) -> dict[str, Any]:
        """Do what only some runs do at an epoch's end; return more fields of its record."""
        return {}

    def more_state(self) -> dict[str, Any]:
        """Plain data for a checkpoint that only some runs have."""
        scaler = self.processes.scaler
        return {} if scaler is None else {"scaler": scaler.state_dict()}

    @abstractmethod
    def epoch_work(self) -> list[float]:
        """The relative cost of each epoch of the whole run."""

    @abstractmethod
    def start_facts(self) -> dict[str, Any]:
        """The fields of `RunStart` that depend on the kind of run."""

    @abstractmethod
    def result(self) -> R:
        """The result of the finished run."""

    def so_far(self) -> Any:
        """What can be used already of what an unfinished run makes; `None`: nothing."""
        return None

    def go(self) -> None:
        """Start or continue, until the end or until a signal raises `Stopped`."""
        if not self.resumed:
            self.record_batch("start")
            self.save()
        try:
            self.finish()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise faults.out_of_memory(self) from None  # No smaller batch helps.

    def save(self) -> None:
        """Write a checkpoint of the whole state; only the first process writes."""
        self.last_save, self.save_soon = time.monotonic(), False
        faults.check_finite(self)
        if self.folder is None:
            return
        with self.state.timed("saving"):
            more = {
                "config": self.folder.config_digest,
                "data": self.data_digest,
                "batch": self.batch.state(),
                "streams": {part: stream.state() for part, stream in self.streams.items()},
                **self.more_state(),
            }
            checkpoint = self.state.checkpoint(more)
            # The library that writes tensors ends the whole process when it gets no memory.
            num_bytes = sum(tensor.nbytes for tensor in checkpoint.tensors.values())
            check_room(_CHECKPOINT_COPIES * num_bytes)
            self.folder.save(checkpoint)

    def stop_on_signal(self) -> None:
        """Raise `Stopped` if a signal asked any process to stop."""
        (number,) = self.processes.maximum([float(self._context.signals.number)])
        if number:
            raise Stopped(self.folder.path if self.folder else None, int(number))

    def train_epoch(self) -> None:
        """The steps that are left of an epoch."""
        state, position = self.state, self.state.position
        state.module.train()
        # Counted over the cycle: surplus images of an epoch's last batch are taken off the next.
        goal = (position.epoch + 1) * self.epoch_images
        while position.images < goal and not (position.step > 0 and self.ends_early):
            start, timed_before = time.perf_counter(), state.epoch.total
            images_before = position.images
            due = position.cycle_step > 0 and position.cycle_step % self.batch.rule.every == 0
            if due and self.batch.check(position.key("check")):
                self.record_batch("memory")
            self.take_step()
            if self.processes.size > 1:
                self.processes.average(list(state.module.buffers()))
            state.epoch.memory = max(state.epoch.memory, self.probe.peak())
            position.step += 1
            position.cycle_step += 1
            if self._first_step is None:
                share = (position.images - images_before) / self.epoch_images
                self._first_step = self.total_epoch, (share, time.perf_counter() - start)
            self._emit_step(goal)
            timed = state.epoch.total - timed_before
            state.epoch.seconds["other"] += time.perf_counter() - start - timed
            self.stop_or_save(position.images < goal)

    def stop_or_save(self, save: bool = True) -> None:
        """Stop if a signal came; save if it is time, unless a checkpoint will come soon anyway."""
        self.stop_on_signal()
        minutes = (time.monotonic() - self.last_save) / 60
        self.save_soon |= self._context.signals.take_save()
        due = self.save_soon or minutes >= self.config.checkpoints.every_minutes
        if due and save:
            self.save()

    def end_epoch(self) -> None:
        """Validate, record the epoch, tell the callbacks, save."""
        state, position, epoch = self.state, self.state.position, self.state.epoch
        scores = {**self._scores(), **self.validate()}
        more = self.conclude_epoch()
        record = EpochRecord(
            **self._epoch_facts(scores),
            type=self.epoch_type,
            total_epoch=self.total_epoch + 1,
            steps=position.step,
            drop_path=self.drop_path,
            **more,
            seconds=epoch.total,
            seconds_for=epoch.seconds,
        )
        state.elapsed += record.seconds
        state.work_done.append(self._speed(1.0))
        self.record(record)
        state.next_epoch()
        with state.timed("other"):  # counts for the next epoch, as does the saving
            self.emit("on_epoch", record)
        self.save()

    @property
    def total_epoch(self) -> int:
        """The number of epochs before this one, in all cycles."""
        return self.state.position.epoch

    @contextmanager
    def reading(self, parts: Sequence[str]) -> Generator[None]:
        """Within it, `next_images` reads these parts, whose streams can be rolled back."""
        self._readable = parts
        try:
            yield
        finally:
            self._readable = ()

    def next_images(self, part: str) -> tuple[Tensor, Tensor]:
        """The next batch of a part, augmented and normalised, and its labels."""
        if part not in self._readable:
            raise ValueError(f"images of '{part}' are read only within an attempt at that part")
        number = self.batch.batch
        with self.state.timed("data"):
            images, labels = self.streams[part].next(number)
            generator = self.state.generators[f"augment {part}"]
            total, offset = number * self.processes.size, number * self.processes.rank
            images = self.augmentation(images, generator, total, offset).to(self.processes.dtype)
        self.last_images[part] = images
        return images, labels

    def optimize(
        self,
        part: str,
        parameters: Sequence[nn.Parameter],
        optimizer: torch.optim.Optimizer,
        gradient_norm: float,
        outcome: Outcome,
    ) -> bool:
        """Average the gradients over all processes, clip them, and take the optimizer's step.

        The outcome counts in the epoch's tally. The host waits for the device once in a step: when
        the network's weights are about to follow. (On a CPU there is nothing to wait for.) With
        scaled gradients it waits for each part, and one that overflowed is left out. Returns
        whether the optimizer took its step.
        """
        gradients = [weight.grad for weight in parameters if weight.grad is not None]
        self.processes.average(gradients)
        scaler = self.processes.scaler
        if scaler is not None:
            scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(parameters, gradient_norm)
        numbers = torch.stack([outcome.loss, outcome.correct, norm.to(outcome.loss)])
        self._outcomes.append((part, self.batch.batch * self.processes.size, numbers))
        last, finite = part == self.weights_part, True
        if last or scaler is not None or self.processes.device.type == "cpu":
            finite = self._count_outcomes()
        if finite:  # Not the scaler's own step: it leaves a first momentum undefined.
            optimizer.step()
        if last and scaler is not None:
            scaler.update()
        optimizer.zero_grad()
        if last:
            self.last_images = {}
        return finite

    def _count_outcomes(self) -> bool:
        """Fetch the outcomes of the step so far, check and count them; whether all are finite."""
        state, outcomes = self.state, self._outcomes
        self._outcomes = []
        rows: list[list[float]] = torch.stack([numbers for *_, numbers in outcomes]).tolist()
        finite = True
        for (part, images, _), (own_loss, own_correct, norm) in zip(outcomes, rows, strict=True):
            broken = float(not math.isfinite(own_loss))
            loss, correct, broken = self.processes.sum([own_loss, own_correct, broken])
            if broken:
                raise faults.not_finite(self, part, "loss")
            finite = finite and math.isfinite(norm)
            if not (finite or self.processes.can_scale_down):
                raise faults.not_finite(self, part, "gradient")
            state.epoch.tallies[part].add(loss / self.processes.size, correct, images)
            if part == self.weights_part:
                state.position.images += images
        return finite

    def start_event(self) -> RunStart:
        return RunStart(
            folder=self.folder.path if self.folder else None,
            device=str(self.processes.device),
            world_size=self.processes.size,
            train_images=self.epoch_images,
            resumed=self.resumed,
            cycle=self.state.position.cycle + 1,
            epoch=self.state.position.epoch + 1,
            **self.start_facts(),
        )

    def notes(self) -> tuple[tuple[str, str], ...]:
        """What a person should know of this config on these images before it starts."""
        return ()

    def record_batch(self, reason: Literal["start", "memory", "out-of-memory"]) -> None:
        position, batch = self.state.position, self.batch.batch * self.processes.size
        record = BatchRecord(**position.counts(), batch=batch, reason=reason)
        self.record(record)
        self.emit("on_batch", record)

    def record(self, record: Record) -> None:
        if self.folder is None:
            self.records.append(record)
            return
        with self.state.timed("saving"):
            self.folder.record(record)

    def records_of(self, kind: type[K]) -> tuple[K, ...]:
        """The records of a kind, of the whole run and not only since it was resumed."""
        records = self.records if self.folder is None else read_records(self.folder.path / RECORDS)
        return tuple(record for record in records if isinstance(record, kind))

    def _scores(self) -> dict[str, Score]:
        """The scores of the epoch so far; a grace epoch trains no architecture weights."""
        tallies = self.state.epoch.tallies
        shown = [part for part in tallies if tallies[part].images or part == self.weights_part]
        return {part: tallies[part].score for part in shown}

    def _epoch_facts(self, scores: dict[str, Score]) -> dict[str, Any]:
        """The fields that events of steps and records of epochs have in common."""
        position, epoch = self.state.position, self.state.epoch
        return {
            "cycle": position.cycle + 1,
            "epoch": position.epoch + 1,
            "grace": self.grace,
            "lr": self.lr,
            "batch": self.batch.batch * self.processes.size,
            "scores": scores,
            "images_per_second": scores[self.weights_part].images / max(epoch.total, 1e-9),
            "memory": epoch.memory,
        }

    def _emit_step(self, goal: int) -> None:
        position = self.state.position
        step = StepEvent(
            **self._epoch_facts(self._scores()),
            step=position.step,
            images=self.epoch_images - (goal - position.images),
            epoch_images=self.epoch_images,
            seconds_left=self.seconds_left(goal),
            used=self.budget_used,
        )
        self.emit("on_step", step)

    def seconds_left(self, goal: int) -> float | None:
        """An estimate for the whole run, from the work that is left and the speed so far."""
        share = 1 - max(goal - self.state.position.images, 0) / self.epoch_images
        here, *later = self.planned_work[self.total_epoch :]
        done = [*self.state.work_done, self._speed(share)]
        return seconds_left(done, here * (1 - share) + sum(later))

    def _speed(self, share: float) -> tuple[float, float]:
        """The work and the seconds of this epoch, of which a share is done."""
        epoch, first = self._first_step or (-1, (0.0, 0.0))
        first = first if epoch == self.total_epoch else (0.0, 0.0)
        work = self.planned_work[self.total_epoch]
        return speed_of(work, share, self.state.epoch.total, first)

    def emit(self, event: str, *arguments: Any) -> None:
        """Call a method of every callback; there are callbacks in the first process only."""
        for callback in self.callbacks:
            getattr(callback, event)(*arguments)


AnyRun: TypeAlias = Run[Any, Any, Any]

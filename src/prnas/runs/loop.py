"""What every kind of run does: epochs of steps, saved, resumed, stopped and told of."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prnas.config.search import RunConfig
from prnas.data.augment import Augmentation, plain
from prnas.data.dataset import DataSet, Images, normalization
from prnas.data.streams import Stream
from prnas.io.memory import check_room, is_out_of_memory, recover_memory
from prnas.runs.batch_size import BatchSize, MemoryProbe
from prnas.runs.callbacks import Validating
from prnas.runs.checkpoint import Checkpoint
from prnas.runs.folder import RunFolder
from prnas.runs.generators import seed_for
from prnas.runs.preparation import check_same, digest_of, digests
from prnas.runs.processes import Processes
from prnas.runs.records import BatchRecord, Score
from prnas.runs.state import RunState, Sums
from prnas.runs.step import StepTaker

LAST = 5  # epochs that "last-five" validates
_COPIES = 3  # of its tensors, while a checkpoint is written
C = TypeVar("C", bound=RunConfig)
S = TypeVar("S", bound=RunState)
T = TypeVar("T", bound=StepTaker[Any])


class Interrupted(Exception):  # noqa: N818 - no error
    """Asked to stop by a signal; the state is at a step's end and can be saved."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclass(frozen=True)
class Setup(Generic[C]):
    """What a loop works with."""

    config: C
    data: DataSet
    processes: Processes
    probe: MemoryProbe
    folder: RunFolder | None
    callbacks: Sequence[Any]
    should_stop: Callable[[], int]  # the signal that asks to, or 0
    should_save: Callable[[], bool] = lambda: False
    replay: bool = True  # decisions about the batch that an earlier session took


class Loop(ABC, Generic[C, S, T]):
    """A run under way. `run` goes on from wherever the state stands."""

    state: S
    steps: T

    def __init__(
        self, setup: Setup[C], places: Mapping[str, Tensor], parts: Sequence[Images]
    ) -> None:
        """`places`: the training images of each part of a step; of the first, one pass an epoch.

        `parts` of the data are those that must be the same in a run that goes on.
        """
        self.config, self.data, self.processes = setup.config, setup.data, setup.processes
        self.probe, self.folder, self.callbacks = setup.probe, setup.folder, setup.callbacks
        self.should_stop, self.should_save = setup.should_stop, setup.should_save
        config, data, processes = self.config, self.data, self.processes
        self.epoch_images = len(next(iter(places.values())))
        used = torch.cat(list(places.values())).sort().values
        self.normalization = normalization(data.train, used)
        self.data_digest = digest_of(parts, data.class_names, self.normalization)
        self.streams = {
            part: Stream(
                data.train,
                where,
                seed_for(config.seed, "stream", part),
                processes.rank,
                processes.size,
            )
            for part, where in places.items()
        }
        folder = self.folder
        self.batch = BatchSize(
            config.batch_rule,
            self.probe,
            self._log_batch,
            lambda share: processes.most([share])[0],
            self.epoch_images // processes.size,
            processes.broadcast(folder.batch_decisions() if folder and setup.replay else {}),
        )
        vary = config.images
        self.augmentation = Augmentation(
            vary.flip, vary.crop_padding, vary.cutout, self.normalization
        )
        self.validation_batch = 1
        self.resumed = False
        self.last_save = time.monotonic()
        self.save_soon = False

    # ---------------------------------------------------------------- for each kind to say

    @abstractmethod
    def go_on(self) -> None:
        """All epochs that are left."""

    @abstractmethod
    def take_step(self) -> None:
        """All parts of one step."""

    @abstractmethod
    def tell_step(self, goal: int) -> None: ...

    def own_state(self) -> dict[str, Any]:
        """What a checkpoint has besides."""
        return {}

    def load_own_state(self, state: Mapping[str, Any]) -> None: ...

    # ---------------------------------------------------------------- the whole

    def run(self) -> None:
        """All that is left of the run."""
        if not self.resumed:
            self.tell_batch("start")
            self.save()
        try:
            self.go_on()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise self.steps.out_of_memory() from None  # where no smaller batch helps

    def load(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint of the same run on the same images."""
        for what, digest in digests(self.config, self.data_digest).items():
            check_same(what, checkpoint.state, digest)
        self.resumed = True
        self.state.load(checkpoint)
        self.batch.load_state(checkpoint.state["batch"])
        for part, stream in self.streams.items():
            stream.load_state(checkpoint.state["streams"][part])
        self.load_own_state(checkpoint.state)

    def save(self) -> None:
        """Write the whole state; only the first process writes."""
        self.last_save, self.save_soon = time.monotonic(), False
        self.steps.check_finite()
        if self.folder is None:
            return
        with self.state.timed("saving"):
            records, content = self.folder.records_state()
            more = {
                **digests(self.config, self.data_digest),
                "batch": self.batch.state(),
                "streams": {part: stream.state() for part, stream in self.streams.items()},
                "records": records,
                **self.own_state(),
            }
            checkpoint = self.state.checkpoint(more)
            # The library that writes tensors ends the whole process when it gets no memory.
            check_room(_COPIES * sum(one.nbytes for one in checkpoint.tensors.values()))
            self.folder.save(replace(checkpoint, records=content))

    # ---------------------------------------------------------------- an epoch

    def train_epoch(self) -> None:
        """What is left of an epoch."""
        state, position = self.state, self.state.position
        state.module.train()
        goal = (position.epoch + 1) * self.epoch_images
        # Counted over the cycle: what the last batch of an epoch has too much, the next has less.
        while position.images < goal:
            start = time.perf_counter()
            known = state.so_far.total
            due = position.cycle_step > 0 and position.cycle_step % self.batch.rule.every == 0
            if due and self.batch.check(position.place("check")):
                self.tell_batch("memory")
            self.take_step()
            if self.processes.size > 1:
                self.processes.average(list(state.module.buffers()))
            state.so_far.memory = max(state.so_far.memory, self.probe.peak())
            position.step += 1
            position.cycle_step += 1
            self.tell_step(goal)
            spent = state.so_far.total - known
            state.so_far.seconds["other"] += time.perf_counter() - start - spent
            self._after_step(goal)

    def _after_step(self, goal: int) -> None:
        """Stop if asked to; save if it is time."""
        (stop,) = self.processes.most([float(self.should_stop())])
        if stop:
            raise Interrupted(int(stop))
        minutes = (time.monotonic() - self.last_save) / 60
        self.save_soon |= self.should_save()
        due = self.save_soon or minutes >= self.config.checkpoints.every_minutes
        if due and self.state.position.images < goal:
            self.save()

    @torch.no_grad()
    def evaluate(
        self, module: nn.Module, images: Images, places: Tensor, part: str
    ) -> tuple[Sums, Tensor]:
        """Loss and accuracy on some images, unvaried, with running statistics; and the confusion.

        The confusion counts images of class i (rows) that were taken for class j.
        """
        module.eval()
        sums = Sums()
        classes = self.data.num_classes
        confusion = torch.zeros(classes * classes, dtype=torch.int64)
        mine = places[self.processes.rank :: self.processes.size]
        while sums.images < len(mine):
            some = mine[sums.images : sums.images + self.validation_batch]
            answers = None
            try:
                answers = self._answers(module, images, some)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error) or self.validation_batch == 1:
                    raise
            if answers is None:  # the error is let go by now, and what it held
                recover_memory()
                self.validation_batch = -(-self.validation_batch // 2)
                continue
            loss, taken_for = answers
            labels = images.labels[some]
            sums.add(loss, float((taken_for == labels).sum()), len(some))
            confusion += torch.bincount(labels * classes + taken_for, minlength=classes * classes)
            self.tell("on_validating", Validating(sums.images, len(mine)))
            # Alone, a process may stop here; several stop together, after the next step.
            if self.processes.size == 1 and self.should_stop():
                raise Interrupted(self.should_stop())
        loss, *counts = self.processes.sum([sums.loss, sums.correct, float(sums.images)])
        if not math.isfinite(loss):
            raise self.steps.not_finite(part, "validation loss")
        if self.processes.size > 1:
            together = self.processes.sum(confusion.tolist())
            confusion = torch.tensor(together, dtype=torch.int64)
        return Sums(loss, counts[0], int(counts[1])), confusion.view(classes, classes)

    def _answers(self, module: nn.Module, images: Images, places: Tensor) -> tuple[float, Tensor]:
        """Mean loss, and the classes that were chosen."""
        pixels = plain(images.fetch(places), self.normalization)
        labels = images.labels[places].to(pixels.device)
        with self.processes.autocast():
            logits = module(pixels.to(self.processes.dtype))
            loss = F.cross_entropy(logits, labels)
        return float(loss), logits.argmax(1).cpu()

    def is_validated(self, epochs: Literal["all", "last-five"], epochs_left: int) -> bool:
        return epochs == "all" or epochs_left <= LAST

    # ---------------------------------------------------------------- telling

    def _log_batch(self, place: str, batch: int) -> None:
        if self.folder is not None:
            self.folder.log_batch(place, batch)

    def tell_batch(self, reason: Literal["start", "memory", "out-of-memory"]) -> None:
        position = self.state.position
        record = BatchRecord(
            cycle=position.cycle,
            epoch=position.epoch,
            step=position.step,
            batch=self.batch.batch * self.processes.size,
            reason=reason,
        )
        self.record(record)
        self.tell("on_batch", record)

    def record(self, record: Any) -> None:
        if self.folder is not None:
            with self.state.timed("saving"):
                self.folder.record(record)

    def tell(self, event: str, *arguments: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(*arguments)


def score(sums: Sums) -> Score:
    return Score(loss=sums.mean_loss, accuracy=sums.accuracy, images=sums.images)

"""The search's loop: epochs of architecture and weight steps, prune and replace, the genotype."""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from prnas.config import SearchConfig
from prnas.errors import UserError
from prnas.reporting.records import BatchRecord, EpochRecord, GenotypeRecord, Parts, Score
from prnas.space.cell_pools import CellWeights
from prnas.space.genotype import ROLES, Genotype, Role
from prnas.training.augment import Augmentation, plain
from prnas.training.callbacks import Callback, Step, Validating
from prnas.training.checkpoint import Checkpoint
from prnas.training.cycle_end import cycle_record, decide
from prnas.training.data import DataSet, normalization
from prnas.training.memory import BatchSize, MemoryProbe, is_out_of_memory
from prnas.training.preparation import cosine, digests, split_places
from prnas.training.processes import Processes
from prnas.training.randomness import seed_for
from prnas.training.run import RunFolder
from prnas.training.state import SearchState, Sums
from prnas.training.steps import Steps
from prnas.training.streams import Stream
from prnas.training.time_left import epoch_work, seconds_left

LAST = 5  # epochs of a cycle that "last-five" validates


class Interrupted(Exception):  # noqa: N818 - no error
    """Asked to stop by a signal; the state is at a step's end and can be saved."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Engine:
    """A search under way. `run` goes on from wherever the state stands."""

    def __init__(
        self,
        config: SearchConfig,
        data: DataSet,
        processes: Processes,
        probe: MemoryProbe,
        folder: RunFolder | None,
        callbacks: Sequence[Callback],
        should_stop: Callable[[], int],
        replay: bool = True,
    ) -> None:
        self.config, self.data, self.processes = config, data, processes
        self.probe, self.folder, self.callbacks = probe, folder, callbacks
        self.should_stop = should_stop
        weights_places, self.architecture_places = split_places(config, data)
        self.epoch_images = len(weights_places)
        if config.batch.min * processes.size > self.epoch_images:
            raise UserError(
                f"batch.min ({config.batch.min}, in {processes.size} process(es)) exceeds the "
                f"{self.epoch_images} images that train the network's weights; set it lower"
            )
        used = torch.cat([weights_places, self.architecture_places]).sort().values
        self.normalization = normalization(data.train, used)
        places = {"weights": weights_places, "architecture": self.architecture_places}
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
        self.state = SearchState(
            config, len(data.class_names), data.shape[0], processes.device, processes.dtype
        )
        self.batch = BatchSize(
            config.batch,
            probe,
            self._log_batch,
            lambda share: processes.most([share])[0],
            self.epoch_images // processes.size,
            processes.broadcast(folder.batch_decisions() if folder and replay else {}),
        )
        vary = config.data
        self.steps = Steps(
            config,
            processes,
            self.state,
            self.streams,
            Augmentation(vary.flip, vary.crop_padding, vary.cutout, self.normalization),
            self.batch,
            lambda: self._tell_batch("out-of-memory"),
        )
        self.validation_batch = config.validation.batch
        self.genotype: Genotype | None = None
        self.resumed = False
        self.last_save = time.monotonic()
        self.save_soon = False

    # ---------------------------------------------------------------- the whole

    def run(self) -> Genotype:
        """All that is left of the search."""
        state = self.state
        if not self.resumed:
            self._tell_batch("start")
            self.save()
        try:
            while not state.position.done:
                while state.position.epoch < state.cycle.epochs:
                    self._train_epoch()
                    self._end_epoch()
                self._end_cycle()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise self.steps.out_of_memory() from None  # where no smaller batch helps
        assert self.genotype is not None
        return self.genotype

    def load(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint of the same search on the same images."""
        for what, digest in digests(self.config, self.data).items():
            if checkpoint.state[what] != digest:
                raise UserError(
                    f"the {what} changed since the checkpoint was written: a resumed search needs "
                    f"the same; start a new one, or undo the change"
                )
        self.resumed = True
        self.state.load(checkpoint)
        self.batch.load_state(checkpoint.state["batch"])
        for part, stream in self.streams.items():
            stream.load_state(checkpoint.state["streams"][part])
        if self.state.position.done:
            self.genotype = Genotype.from_json(checkpoint.state["genotype"])
        self.steps.prepare()

    def save(self) -> None:
        """Write the whole state; only the first process writes."""
        self.last_save, self.save_soon = time.monotonic(), False
        if self.folder is None:
            return
        with self.state.timed("saving"):
            more = {
                **digests(self.config, self.data),
                "batch": self.batch.state(),
                "streams": {part: stream.state() for part, stream in self.streams.items()},
                "records": self.folder.records_state(),
                "genotype": self.genotype.to_json() if self.genotype else None,
            }
            self.folder.save(self.state.checkpoint(more))

    # ---------------------------------------------------------------- an epoch

    @property
    def grace(self) -> bool:
        return self.state.position.epoch < self.state.cycle.grace_epochs

    @property
    def lr(self) -> float:
        weights = self.config.weights
        epoch, epochs = self.state.position.epoch, self.state.cycle.epochs
        return cosine(weights.lr, weights.lr_min, epoch, epochs)

    def _train_epoch(self) -> None:
        state, position = self.state, self.state.position
        for group in state.weights_optimizer.param_groups:
            group["lr"] = self.lr
        state.supernet.train()
        goal = (position.epoch + 1) * self.epoch_images
        # Counted over the cycle: what the last batch of an epoch has too much, the next has less.
        while position.images < goal:
            start = time.perf_counter()
            known = state.so_far.total
            due = position.cycle_step > 0 and position.cycle_step % self.config.batch.every == 0
            if due and self.batch.check(position.place("check")):
                self._tell_batch("memory")
            if not self.grace:
                self.save_soon |= self.steps.do("architecture")
            self.save_soon |= self.steps.do("weights")
            if self.processes.size > 1:
                self.processes.average(list(state.supernet.buffers()))
            state.so_far.memory = max(state.so_far.memory, self.probe.peak())
            position.step += 1
            position.cycle_step += 1
            self._tell_step(goal)
            spent = state.so_far.total - known
            state.so_far.seconds["other"] += time.perf_counter() - start - spent
            self._after_step(goal)

    def _after_step(self, goal: int) -> None:
        """Stop if asked to; save if it is time."""
        (stop,) = self.processes.most([float(self.should_stop())])
        if stop:
            raise Interrupted(int(stop))
        minutes = (time.monotonic() - self.last_save) / 60
        due = self.save_soon or minutes >= self.config.checkpoints.every_minutes
        if due and self.state.position.images < goal:
            self.save()

    def _end_epoch(self) -> None:
        state, position, so_far = self.state, self.state.position, self.state.so_far
        validation = None
        left = state.cycle.epochs - position.epoch
        if self.config.validation.epochs == "all" or left <= LAST:
            with state.timed("validation"):
                validation = self._validate()
            self.probe.reset()  # the next batch size follows from training, not from this
        before = self.config.schedule.cycles[: position.cycle]
        record = EpochRecord(
            cycle=position.cycle,
            epoch=position.epoch,
            total_epoch=sum(one.epochs for one in before) + position.epoch,
            grace=self.grace,
            steps=position.step,
            lr=self.lr,
            batch=self.batch.batch * self.processes.size,
            weights=_score(so_far.weights),
            architecture=_score(so_far.architecture) if so_far.architecture.images else None,
            validation=_score(validation) if validation else None,
            seconds=so_far.total,
            images_per_second=so_far.weights.images / max(so_far.total, 1e-9),
            memory=so_far.memory,
            parts=Parts(**so_far.seconds),
        )
        state.elapsed += record.seconds
        work = epoch_work(self.config, position.cycle)[position.epoch]
        state.work_done.append((work, record.seconds))
        self._record(record)
        state.next_epoch()
        with state.timed("other"):  # counts for the next epoch, as does the saving
            self._tell("on_epoch", record)
        self.save()

    @torch.no_grad()
    def _validate(self) -> Sums:
        """Loss and accuracy on the architecture half, with running statistics, unvaried."""
        self.state.supernet.eval()
        sums = Sums()
        mine = self.architecture_places[self.processes.rank :: self.processes.size]
        while sums.images < len(mine):
            places = mine[sums.images : sums.images + self.validation_batch]
            try:
                loss, correct = self.evaluate(places)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error) or self.validation_batch == 1:
                    raise
                self.validation_batch = -(-self.validation_batch // 2)
                continue
            sums.add(loss, correct, len(places))
            self._tell("on_validating", Validating(sums.images, len(mine)))
            # Alone, a process may stop here; several stop together, after the next step.
            if self.processes.size == 1 and self.should_stop():
                raise Interrupted(self.should_stop())
        loss, correct, images = self.processes.sum([sums.loss, sums.correct, float(sums.images)])
        if not math.isfinite(loss):
            raise self.steps.not_finite("weights", "validation loss")
        return Sums(loss, correct, int(images))

    def evaluate(self, places: Tensor) -> tuple[float, float]:
        """Mean loss, and how many were right, of some training images as they are."""
        images = plain(self.data.train.fetch(places), self.normalization)
        labels = self.data.train.labels[places].to(images.device)
        with self.processes.autocast():
            logits = self.state.supernet(images.to(self.processes.dtype))
            loss = F.cross_entropy(logits, labels)
        return float(loss), float((logits.argmax(1) == labels).sum())

    # ---------------------------------------------------------------- a cycle's end

    def _end_cycle(self) -> None:
        state, position = self.state, self.state.position
        pools, weights = state.supernet.pools, self._architecture_weights()
        self.processes.check_equal(list(state.supernet.parameters()), "weights")
        change, genotype = decide(self.config, position.cycle, pools, weights, state.decisions)
        record = cycle_record(self.config, position.cycle, pools, weights, change)
        self._record(record)
        start = time.perf_counter()
        self._tell("on_cycle", record, pools.apply(change))
        if genotype is not None:
            position.done, self.genotype = True, genotype
            self._record(GenotypeRecord(genotype=genotype.to_json()))
            if self.folder is not None:
                self.folder.write_genotype(genotype)
        else:
            state.next_cycle(change)
            self.steps.prepare()
            self.batch.restart()
            state.so_far.seconds["other"] += time.perf_counter() - start
            self._tell_batch("start")
        self.save()

    def _architecture_weights(self) -> dict[Role, CellWeights]:
        found: dict[Role, CellWeights] = {}
        for role in ROLES:
            edges = self.state.supernet.architecture_weights(role)
            found[role] = [one.detach().cpu().double().tolist() for one in edges]
        return found

    # ---------------------------------------------------------------- telling

    def _tell_step(self, goal: int) -> None:
        position, so_far = self.state.position, self.state.so_far
        seconds = max(so_far.total, 1e-9)
        trained = so_far.architecture.images > 0
        step = Step(
            cycle=position.cycle,
            epoch=position.epoch,
            grace=self.grace,
            step=position.step,
            images=self.epoch_images - (goal - position.images),
            epoch_images=self.epoch_images,
            lr=self.lr,
            batch=self.batch.batch * self.processes.size,
            weights_loss=so_far.weights.mean_loss,
            weights_accuracy=so_far.weights.accuracy,
            architecture_accuracy=so_far.architecture.accuracy if trained else None,
            images_per_second=so_far.weights.images / seconds,
            memory=so_far.memory,
            seconds_left=self._seconds_left(goal, seconds),
        )
        self._tell("on_step", step)

    def _log_batch(self, place: str, batch: int) -> None:
        if self.folder is not None:
            self.folder.log_batch(place, batch)

    def _tell_batch(self, reason: Literal["start", "memory", "out-of-memory"]) -> None:
        position = self.state.position
        record = BatchRecord(
            cycle=position.cycle,
            epoch=position.epoch,
            step=position.step,
            batch=self.batch.batch * self.processes.size,
            reason=reason,
        )
        self._record(record)
        self._tell("on_batch", record)

    def _record(self, record: Any) -> None:
        if self.folder is not None:
            with self.state.timed("saving"):
                self.folder.record(record)

    def _tell(self, event: str, *arguments: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(*arguments)

    def _seconds_left(self, goal: int, seconds: float) -> float | None:
        """Of the whole search, from the work that is left and the speed so far."""
        position = self.state.position
        works = [epoch_work(self.config, one) for one in range(len(self.config.schedule.cycles))]
        share = 1 - max(goal - position.images, 0) / self.epoch_images
        here = works[position.cycle]
        left = (
            here[position.epoch] * (1 - share)
            + sum(here[position.epoch + 1 :])
            + sum(sum(one) for one in works[position.cycle + 1 :])
        )
        done = [*self.state.work_done, (here[position.epoch] * share, seconds)]
        return seconds_left(done, left)


def _score(sums: Sums) -> Score:
    return Score(loss=sums.mean_loss, accuracy=sums.accuracy, images=sums.images)

"""The search's loop: epochs of architecture and weight steps, prune and replace, the genotype."""

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prnas.config import SearchConfig
from prnas.errors import UserError
from prnas.reporting.records import (
    BatchRecord,
    CycleRecord,
    EpochRecord,
    GenotypeRecord,
    Parts,
    Score,
)
from prnas.space.cell_pools import CellWeights, Pools
from prnas.space.change import Change
from prnas.space.counting import discoverable
from prnas.space.derivation import derive
from prnas.space.genotype import ROLES, Genotype, Role
from prnas.space.statistics import average_statistics, cell_statistics, edge_statistics
from prnas.training.augment import Augmentation, plain
from prnas.training.callbacks import Callback, Step, Validating
from prnas.training.checkpoint import Checkpoint
from prnas.training.data import DataSet, halves, normalization
from prnas.training.memory import BatchSize, MemoryProbe, is_out_of_memory
from prnas.training.processes import Processes
from prnas.training.randomness import seed_for, torch_generator
from prnas.training.run import RunFolder
from prnas.training.state import SearchState, Sums
from prnas.training.streams import Stream
from prnas.training.time_left import epoch_work, seconds_left

Part = Literal["architecture", "weights"]
MOST_STEPS = 12  # of morphing that are counted; without limits the numbers explode
LAST = 5  # epochs of a cycle that "last-five" validates


class Interrupted(Exception):  # noqa: N818 - no error
    """Asked to stop by a signal; the state is at a step's end and can be saved."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def cosine(lr: float, lr_min: float, epoch: int, epochs: int) -> float:
    """The learning rate of an epoch: from `lr` towards `lr_min`, restarted with each cycle."""
    return lr_min + (lr - lr_min) * (1 + math.cos(math.pi * epoch / epochs)) / 2


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
        self.folder, self.callbacks, self.should_stop = folder, callbacks, should_stop
        self.probe = probe
        weights_places, self.architecture_places = split_places(config, data)
        self.epoch_images = len(weights_places)
        normal = normalization(
            data.train, torch.cat([weights_places, self.architecture_places]).sort().values
        )
        self.normalization = normal
        self.augmentation = Augmentation(
            config.data.flip, config.data.crop_padding, config.data.cutout, normal
        )
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
        channels = data.shape[0]
        self.state = SearchState(
            config, len(data.class_names), channels, processes.device, processes.dtype
        )
        if config.batch.min * processes.size > self.epoch_images:
            raise UserError(
                f"batch.min ({config.batch.min}, in {processes.size} process(es)) exceeds the "
                f"{self.epoch_images} images that train the network's weights; set it lower"
            )
        self.batch = BatchSize(
            config.batch,
            probe,
            self._log_batch,
            lambda share: processes.most([share])[0],
            self.epoch_images // processes.size,
            processes.broadcast(folder.batch_decisions() if folder and replay else {}),
        )
        self.validation_batch = config.validation.batch
        self.resumed = False
        self.last_save = time.monotonic()
        self.save_soon = False
        self.forward = self._forward()

    def _forward(self) -> Callable[..., Tensor]:
        if not self.config.compute.compile:
            return self.state.supernet
        torch.compiler.reset()  # what was compiled for the pools before is of no use
        return torch.compile(self.state.supernet)

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
            raise self._out_of_memory() from None  # where no smaller batch helps
        genotype, _ = self._derived  # the last cycle leaves it
        return genotype

    def load(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint of the same search on the same images."""
        for what, digest in self._digests().items():
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
            self._derived = (Genotype.from_json(checkpoint.state["genotype"]), None)
        self.forward = self._forward()

    def save(self) -> None:
        """Write the whole state; only the first process writes."""
        self.last_save, self.save_soon = time.monotonic(), False
        if self.folder is None:
            return
        more = {
            **self._digests(),
            "batch": self.batch.state(),
            "streams": {part: stream.state() for part, stream in self.streams.items()},
            "records": self.folder.records_state(),
            "genotype": self._derived[0].to_json() if self.state.position.done else None,
        }
        self.folder.save(self.state.checkpoint(more))

    def _digests(self) -> dict[str, str]:
        """What must be the same in a search that goes on."""
        config = self.config.to_data()
        for section in ("compute", "checkpoints", "description"):
            del config[section]
        for how in ("root", "storage", "workers"):
            del config["data"][how]
        train = self.data.train
        images = [len(train), train.shape, self.data.class_names]
        labels = train.labels.to(torch.int64).numpy().tobytes()
        return {
            "config": hashlib.sha256(json.dumps(config).encode()).hexdigest(),
            "data": hashlib.sha256(json.dumps(images).encode() + labels).hexdigest(),
        }

    # ---------------------------------------------------------------- an epoch

    @property
    def grace(self) -> bool:
        return self.state.position.epoch < self.state.cycle.grace_epochs

    @property
    def lr(self) -> float:
        weights = self.config.weights
        return cosine(
            weights.lr, weights.lr_min, self.state.position.epoch, self.state.cycle.epochs
        )

    def _train_epoch(self) -> None:
        state, position = self.state, self.state.position
        for group in state.weights_optimizer.param_groups:
            group["lr"] = self.lr
        state.supernet.train()
        goal = (position.epoch + 1) * self.epoch_images
        # Counted over the cycle: what the last batch of an epoch has too much, the next has less.
        while position.images < goal:
            start = time.perf_counter()
            known = sum(state.so_far.seconds.values())
            due = position.cycle_step > 0 and position.cycle_step % self.config.batch.every == 0
            if due and self.batch.check(self._place("check")):
                self._tell_batch("memory")
            if not self.grace:
                self._do_step("architecture")
            self._do_step("weights")
            if self.processes.size > 1:
                self.processes.average(list(state.supernet.buffers()))
            state.so_far.memory = max(state.so_far.memory, self.probe.peak())
            position.step += 1
            position.cycle_step += 1
            self._tell_step(goal)
            spent = sum(state.so_far.seconds.values()) - known
            state.so_far.seconds["other"] += time.perf_counter() - start - spent
            self._after_step(goal)

    def _tell_step(self, goal: int) -> None:
        state, position = self.state, self.state.position
        so_far = state.so_far
        seconds = max(sum(so_far.seconds.values()), 1e-9)
        grace = so_far.architecture.images == 0
        self._tell(
            "on_step",
            Step(
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
                architecture_accuracy=None if grace else so_far.architecture.accuracy,
                images_per_second=so_far.weights.images / seconds,
                memory=so_far.memory,
                seconds_left=self._seconds_left(goal, seconds),
            ),
        )

    def _after_step(self, goal: int) -> None:
        """Stop if asked to; save if it is time."""
        position = self.state.position
        (stop,) = self.processes.most([float(self.should_stop())])
        if stop:
            raise Interrupted(int(stop))
        minutes = (time.monotonic() - self.last_save) / 60
        if position.images < goal and (
            self.save_soon or minutes >= self.config.checkpoints.every_minutes
        ):
            with self._timed("saving"):
                self.save()

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.state.so_far.seconds[part] += time.perf_counter() - start

    def _do_step(self, part: Part) -> None:
        """One step of one part; with a smaller batch of the same images if memory runs out."""
        while self.batch.known_to_fail(self._place(part)) is not None:
            self._lower(part)
        while True:
            generator = self.state.generators[f"augment {part}"]
            before = (
                self.streams[part].state(),
                generator.get_state(),
                self.state.generators["dropout"].get_state(),
            )
            problem: BaseException | None = None
            found = None
            try:
                found = self._forward_backward(part)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                problem = error.with_traceback(None)  # it holds the tensors that filled the memory
            loss, correct = found if found is not None else (0.0, 0.0)
            failed, broken = self.processes.most(
                [float(problem is not None), float(not math.isfinite(loss))]
            )
            if not failed:
                if broken:
                    raise self._not_finite(part, "loss")
                self._update(part, loss, correct)
                return
            self._clear_gradients(part)
            self.streams[part].load_state(before[0])
            generator.set_state(before[1])
            self.state.generators["dropout"].set_state(before[2])
            if not self._lower(part):
                raise self._out_of_memory() from None
            # A failed pass has touched running statistics: save as soon as the step is done, so
            # that a resumed search does not have to repeat it.
            self.save_soon = True

    def _out_of_memory(self) -> UserError:
        kept = (
            "The last checkpoint is kept: go on from it with --recompute. " if self.folder else ""
        )
        return UserError(
            f"out of memory with a batch of {self.batch.batch} (the smallest is "
            f"{self.config.batch.min}), {self.state.position}. {kept}Or set batch.min, channels or "
            "cells lower in a new search."
        )

    def _lower(self, part: Part) -> bool:
        if not self.batch.lower(self._place(part)):
            return False
        self._tell_batch("out-of-memory")
        return True

    def _forward_backward(self, part: Part) -> tuple[float, float]:
        state, number = self.state, self.batch.batch
        with self._timed("data"):
            images, labels = self.streams[part].next(number)
            generator = state.generators[f"augment {part}"]
            total, offset = number * self.processes.size, number * self.processes.rank
            images = self.augmentation(images, generator, total, offset).to(self.processes.dtype)
        with self._timed(part), state.supernet.training_only(part):
            with self.processes.autocast():
                logits = self.forward(images, state.generators["dropout"])
                loss = F.cross_entropy(logits, labels)
            loss.backward()
            with torch.no_grad():
                correct = (logits.argmax(1) == labels).sum()
                # The one place of a step where the host waits for the device.
                both = torch.stack([loss.detach(), correct.to(loss.dtype)]).tolist()
        return both[0], both[1]

    def _update(self, part: Part, loss: float, correct: float) -> None:
        state = self.state
        with self._timed(part):
            if part == "architecture":
                parameters, norm = (
                    state.architecture_parameters,
                    self.config.architecture.gradient_norm,
                )
                optimizer = state.architecture_optimizer
            else:
                parameters, norm = state.weight_parameters, self.config.weights.gradient_norm
                optimizer = state.weights_optimizer
            gradients = [one.grad for one in parameters if one.grad is not None]
            self.processes.average(gradients)
            total = nn.utils.clip_grad_norm_(parameters, norm, foreach=True)
            if not math.isfinite(float(total)):
                raise self._not_finite(part, "gradient")
            optimizer.step()
            optimizer.zero_grad()
            images = self.batch.batch * self.processes.size
            loss_sum, correct = self.processes.sum([loss, correct])
            sums = getattr(state.so_far, part)
            sums.add(loss_sum / self.processes.size, correct, images)
            if part == "weights":
                state.position.images += images

    def _clear_gradients(self, part: Part) -> None:
        for parameter in self.state.supernet.parameters():
            parameter.grad = None
        if self.processes.device.type == "cuda":
            torch.cuda.empty_cache()

    def _not_finite(self, part: Part, what: str) -> UserError:
        which = "network" if part == "weights" else "architecture"
        kept = "The last checkpoint is kept. " if self.folder else ""
        return UserError(
            f"the {what} of the {which} step is not a finite number "
            f"({self.state.position}). {kept}In a new search, try a smaller weights.lr, "
            f"architecture.lr or gradient_norm; and look at the data."
        )

    def _end_epoch(self) -> None:
        state, position = self.state, self.state.position
        so_far = state.so_far
        validation = None
        if self._validates():
            with self._timed("validation"):
                validation = self._validate()
            self.probe.reset()  # the next batch size follows from training, not from this
        seconds = sum(so_far.seconds.values())
        record = EpochRecord(
            cycle=position.cycle,
            epoch=position.epoch,
            total_epoch=sum(one.epochs for one in self.config.schedule.cycles[: position.cycle])
            + position.epoch,
            grace=self.grace,
            steps=position.step,
            lr=self.lr,
            batch=self.batch.batch * self.processes.size,
            weights=_score(so_far.weights),
            architecture=_score(so_far.architecture) if so_far.architecture.images else None,
            validation=_score(validation) if validation else None,
            seconds=seconds,
            images_per_second=so_far.weights.images / max(seconds, 1e-9),
            memory=so_far.memory,
            parts=Parts(**so_far.seconds),
        )
        state.elapsed += seconds
        state.work_done.append((epoch_work(self.config, position.cycle)[position.epoch], seconds))
        self._record(record)
        state.next_epoch()
        with self._timed("other"):  # counts for the next epoch, as does the saving
            self._tell("on_epoch", record)
        with self._timed("saving"):
            self.save()

    def _validates(self) -> bool:
        left = self.state.cycle.epochs - self.state.position.epoch
        return self.config.validation.epochs == "all" or left <= LAST

    @torch.no_grad()
    def _validate(self) -> Sums:
        """Loss and accuracy on the architecture half, with running statistics, unvaried."""
        self.state.supernet.eval()
        sums = Sums()
        mine = self.architecture_places[self.processes.rank :: self.processes.size]
        while sums.images < len(mine):
            places = mine[sums.images : sums.images + self.validation_batch]
            try:
                loss, correct = self._evaluate(places)
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
        total = self.processes.sum([sums.loss, sums.correct, float(sums.images)])
        if not math.isfinite(total[0]):
            raise self._not_finite("weights", "validation loss")
        return Sums(total[0], total[1], int(total[2]))

    def _evaluate(self, places: Tensor) -> tuple[float, float]:
        images = plain(self.data.train.fetch(places), self.normalization)
        labels = self.data.train.labels[places].to(images.device)
        with self.processes.autocast():
            logits = self.state.supernet(images.to(self.processes.dtype))
            loss = F.cross_entropy(logits, labels)
        return float(loss), float((logits.argmax(1) == labels).sum())

    # ---------------------------------------------------------------- a cycle's end

    def _end_cycle(self) -> None:
        state, config = self.state, self.config
        position, cycle = state.position, state.cycle
        weights = self._architecture_weights()
        self.processes.check_equal(list(state.supernet.parameters()), "weights")
        pools = state.supernet.pools
        last = position.cycle == len(config.schedule.cycles) - 1
        if last:
            limits = {
                role: bound
                for role, bound in (
                    ("normal", config.derivation.max_skips_normal),
                    ("reduction", config.derivation.max_skips_reduction),
                )
                if bound is not None
            }
            genotype, change = derive(pools, weights, state.decisions, limits)  # pyright: ignore
            self._derived = (genotype, change)
        else:
            changes = [
                pools.cell(role).evolve(
                    weights[role],
                    cycle.survivors,
                    cycle.morphisms,
                    config.space.limits,
                    state.decisions,
                )[1]
                for role in ROLES
            ]
            change = Change(*changes)
        after = pools.apply(change)
        record = CycleRecord(
            cycle=position.cycle,
            pools={
                role: [[op.label for op in one.candidates] for one in pools.cell(role).edges]
                for role in ROLES
            },
            architecture={role: [list(one) for one in weights[role]] for role in ROLES},
            change=change.to_json(),
            statistics=statistics_json(after, change, config),
        )
        self._record(record)
        start = time.perf_counter()
        self._tell("on_cycle", record, after)
        if last:
            position.done = True
            genotype = self._derived[0]
            self._record(GenotypeRecord(genotype=genotype.to_json()))
            if self.folder is not None:
                self.folder.write_genotype(genotype)
        else:
            state.next_cycle(change)
            self.forward = self._forward()
            self.batch.restart()
            state.so_far.seconds["other"] += time.perf_counter() - start
            self._tell_batch("start")
        with self._timed("saving"):
            self.save()

    def _architecture_weights(self) -> dict[Role, CellWeights]:
        weights = {role: self.state.supernet.architecture_weights(role) for role in ROLES}
        return {
            role: [one.detach().cpu().double().tolist() for one in edges]
            for role, edges in weights.items()
        }

    # ---------------------------------------------------------------- telling

    def _place(self, what: str) -> str:
        position = self.state.position
        return f"{position.cycle}/{position.epoch}/{position.step}/{what}"

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
            with self._timed("saving"):
                self.folder.record(record)

    def _tell(self, event: str, *arguments: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(*arguments)

    def _seconds_left(self, goal: int, seconds: float) -> float | None:
        """Of the whole search, from the work that is left and the speed so far."""
        state, position = self.state, self.state.position
        works = [epoch_work(self.config, one) for one in range(len(self.config.schedule.cycles))]
        share = 1 - max(goal - position.images, 0) / self.epoch_images
        here = works[position.cycle]
        left = (
            here[position.epoch] * (1 - share)
            + sum(here[position.epoch + 1 :])
            + sum(sum(one) for one in works[position.cycle + 1 :])
        )
        done = [*state.work_done, (here[position.epoch] * share, seconds)]
        return seconds_left(done, left)


def split_places(config: SearchConfig, data: DataSet) -> tuple[Tensor, Tensor]:
    """The training images of the weights and of the architecture."""
    number = len(data.train)
    if config.data.images is not None and config.data.images > number:
        raise UserError(
            f"data.images asks for {config.data.images} training images; {data.name} has {number}"
        )
    generator = torch_generator(config.seed, "halves")
    used = torch.randperm(number, generator=generator)[: config.data.images].sort().values
    weights, architecture = halves(
        data.train.labels[used], config.data.architecture_share, generator
    )
    return used[weights], used[architecture]


def _score(sums: Sums) -> Score:
    return Score(loss=sums.mean_loss, accuracy=sums.accuracy, images=sums.images)


def statistics_json(pools: Pools, change: Change, config: SearchConfig) -> dict[str, Any]:
    """The spec's statistics after a cycle: on average, for each cell and for each edge."""

    def plain_data(one: Any) -> dict[str, Any]:
        data = asdict(one)
        data["kernels"] = {str(size): share for size, share in data["kernels"].items()}
        return data

    found: dict[str, Any] = {"average": plain_data(average_statistics(pools, change))}
    for role in ROLES:
        cell, changes = pools.cell(role), change.cell(role)
        pairs = zip(cell.edges, changes.edges, strict=True)
        found[role] = {
            "cell": plain_data(cell_statistics(cell, changes)),
            "edges": [plain_data(edge_statistics(*pair)) for pair in pairs],
        }
    steps = config.schedule.num_replacements
    count = len(discoverable(config.space, steps)) if steps <= MOST_STEPS else None
    found["discoverable"] = count
    return found

"""The search's loop: epochs of architecture and weight steps, prune and replace, the genotype."""

import time
from collections.abc import Mapping
from typing import Any

from prnas.config.search import SearchConfig
from prnas.runs.callbacks import Step
from prnas.runs.checked_state import whole
from prnas.runs.loop import Loop, Setup, score
from prnas.runs.preparation import cosine, split_places
from prnas.runs.records import EpochRecord, GenotypeRecord, Parts
from prnas.runs.state import Sums
from prnas.searching.cycle_end import cycle_record, decide
from prnas.searching.state import SearchState
from prnas.searching.step import Steps
from prnas.searching.time_left import epoch_work, seconds_left
from prnas.space.genotype import ROLES, Genotype, Role
from prnas.space.pools import CellWeights


class Engine(Loop[SearchConfig, SearchState, Steps]):
    """A search under way."""

    def __init__(self, setup: Setup[SearchConfig]) -> None:
        weights_places, self.architecture_places = split_places(setup.config, setup.data)
        super().__init__(
            setup,
            {"weights": weights_places, "architecture": self.architecture_places},
            [setup.data.train],
        )
        config, data, processes = self.config, self.data, self.processes
        self.state = SearchState(
            config, len(data.class_names), data.shape[0], processes.device, processes.dtype
        )
        self.steps = Steps(self)
        self.validation_batch = config.validation.batch
        self.genotype: Genotype | None = None

    def go_on(self) -> None:
        state = self.state
        while not state.position.done:
            while state.position.epoch < state.cycle.epochs:
                for group in state.weights_optimizer.param_groups:
                    group["lr"] = self.lr
                self.train_epoch()
                self._end_epoch()
            self._end_cycle()
        assert self.genotype is not None
        if self.folder is not None:  # once more: a finished run that is resumed mends its result
            self.folder.write_genotype(self.genotype)

    def own_state(self) -> dict[str, Any]:
        return {"genotype": self.genotype.to_json() if self.genotype else None}

    def load_own_state(self, state: Mapping[str, Any]) -> None:
        whole("epoch", self.state.position.epoch, most=self.state.cycle.epochs)
        if self.state.position.done:
            self.genotype = Genotype.from_json(state["genotype"])
        self.steps.prepare()

    # ---------------------------------------------------------------- an epoch

    @property
    def grace(self) -> bool:
        return self.state.position.epoch < self.state.cycle.grace_epochs

    @property
    def lr(self) -> float:
        weights = self.config.weights
        epoch, epochs = self.state.position.epoch, self.state.cycle.epochs
        return cosine(weights.lr, weights.lr_min, epoch, epochs)

    def take_step(self) -> None:
        if not self.grace:
            self.save_soon |= self.steps.do("architecture")
        self.save_soon |= self.steps.do("weights")

    def _end_epoch(self) -> None:
        state, position, so_far = self.state, self.state.position, self.state.so_far
        validation: Sums | None = None
        left = state.cycle.epochs - position.epoch
        if self.is_validated(self.config.validation.epochs, left):
            with state.timed("validation"):
                validation, _ = self.evaluate(
                    state.supernet, self.data.train, self.architecture_places, "weights"
                )
            self.probe.reset()  # the next batch size follows from training, not from this
        before = self.config.schedule.cycles[: position.cycle]
        architecture = so_far.sums["architecture"]
        record = EpochRecord(
            cycle=position.cycle,
            epoch=position.epoch,
            total_epoch=sum(one.epochs for one in before) + position.epoch,
            grace=self.grace,
            steps=position.step,
            lr=self.lr,
            batch=self.batch.batch * self.processes.size,
            weights=score(so_far.sums["weights"]),
            architecture=score(architecture) if architecture.images else None,
            validation=score(validation) if validation else None,
            seconds=so_far.total,
            images_per_second=so_far.sums["weights"].images / max(so_far.total, 1e-9),
            memory=so_far.memory,
            parts=Parts(**so_far.seconds),
        )
        state.elapsed += record.seconds
        work = epoch_work(self.config, position.cycle)[position.epoch]
        state.work_done.append((work, record.seconds))
        self.record(record)
        state.next_epoch()
        with state.timed("other"):  # counts for the next epoch, as does the saving
            self.tell("on_epoch", record)
        self.save()

    # ---------------------------------------------------------------- a cycle's end

    def _end_cycle(self) -> None:
        state, position = self.state, self.state.position
        pools, weights = state.supernet.pools, self._architecture_weights()
        self.processes.check_equal(list(state.supernet.parameters()), "weights")
        change, genotype = decide(self.config, position.cycle, pools, weights, state.decisions)
        record = cycle_record(self.config, position.cycle, pools, weights, change)
        self.record(record)
        start = time.perf_counter()
        self.tell("on_cycle", record, pools.apply(change))
        if genotype is not None:
            position.done, self.genotype = True, genotype
            self.record(GenotypeRecord(genotype=genotype.to_json()))
        else:
            state.next_cycle(change)
            self.steps.prepare()
            self.batch.restart()
            state.so_far.seconds["other"] += time.perf_counter() - start
            self.tell_batch("start")
        self.save()

    def _architecture_weights(self) -> dict[Role, CellWeights]:
        found: dict[Role, CellWeights] = {}
        for role in ROLES:
            edges = self.state.supernet.architecture_weights(role)
            found[role] = [one.detach().cpu().double().tolist() for one in edges]
        return found

    # ---------------------------------------------------------------- telling

    def tell_step(self, goal: int) -> None:
        position, so_far = self.state.position, self.state.so_far
        seconds = max(so_far.total, 1e-9)
        weights, architecture = so_far.sums["weights"], so_far.sums["architecture"]
        step = Step(
            cycle=position.cycle,
            epoch=position.epoch,
            grace=self.grace,
            step=position.step,
            images=self.epoch_images - (goal - position.images),
            epoch_images=self.epoch_images,
            lr=self.lr,
            batch=self.batch.batch * self.processes.size,
            weights_loss=weights.mean_loss,
            weights_accuracy=weights.accuracy,
            architecture_accuracy=architecture.accuracy if architecture.images else None,
            images_per_second=weights.images / seconds,
            memory=so_far.memory,
            seconds_left=self._seconds_left(goal, seconds),
        )
        self.tell("on_step", step)

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

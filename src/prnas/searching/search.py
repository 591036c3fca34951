"""The search's loop: epochs of architecture and weight steps, prune and replace, the genotype."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from prnas.config.search import SearchConfig
from prnas.data.dataset import DataSet, Images, halves
from prnas.nets.relaxation import CycleProgress
from prnas.runs.callbacks import SearchResult, Start, Step
from prnas.runs.checkpoint import Checkpoint
from prnas.runs.evaluation import evaluate
from prnas.runs.generators import torch_generator
from prnas.runs.preparation import check_sizes, cosine, draw_indices
from prnas.runs.records import CycleRecord, EpochRecord, GenotypeRecord, Parts
from prnas.runs.run import Run, RunContext, score
from prnas.runs.state import Tally
from prnas.searching.cycle_end import cycle_record, prune_and_replace
from prnas.searching.state import SearchState
from prnas.searching.step import make_step
from prnas.searching.time_left import epoch_work, seconds_left
from prnas.space.genotype import ROLES, Genotype, Role
from prnas.space.pools import CellWeights


class Search(Run[SearchConfig, SearchState]):
    """A search under way."""

    config_type = SearchConfig
    weights_part = "weights"

    def __init__(
        self, context: RunContext[SearchConfig], checkpoint: Checkpoint | None = None
    ) -> None:
        super().__init__(context, checkpoint)
        self.validation_batch = self.config.validation.batch
        self.genotype: Genotype | None = None
        if checkpoint is not None and self.state.position.done:
            self.genotype = Genotype.from_json(checkpoint.state["genotype"])
        self.step = make_step(self)
        self._compile()

    @classmethod
    def prepare(cls, config: SearchConfig, data: DataSet, num_processes: int) -> dict[str, Tensor]:
        indices = split_halves(config, data)
        check_sizes(config, data, len(indices["weights"]), num_processes)
        return indices

    def compared_images(self) -> Sequence[Images]:
        return [self.data.train]

    def make_state(self, saved: Mapping[str, Any] | None) -> SearchState:
        data, processes = self.data, self.processes
        return SearchState(
            self.config, data.num_classes, data.shape[0], processes.device, processes.dtype, saved
        )

    def extra_state(self) -> dict[str, Any]:
        return {"genotype": self.genotype.to_json() if self.genotype else None}

    # ---------------------------------------------------------------- the whole search

    def finish(self) -> None:
        state = self.state
        while not state.position.done:
            while state.position.epoch < state.cycle.epochs:
                for group in state.weights_optimizer.param_groups:
                    group["lr"] = self.lr
                self.train_epoch()
                self._end_epoch()
            self._end_cycle()
        assert self.genotype is not None
        if self.folder is not None:  # again for a finished run: resuming it repairs its result
            self.folder.write_genotype(self.genotype)

    def take_step(self) -> None:
        self.state.supernet.relaxation.progress = self.progress
        self.step.take()

    # ---------------------------------------------------------------- an epoch

    @property
    def grace(self) -> bool:
        """Whether this epoch trains the network's weights only."""
        return self.state.position.epoch < self.state.cycle.grace_epochs

    @property
    def lr(self) -> float:
        weights = self.config.weights
        epoch, epochs = self.state.position.epoch, self.state.cycle.epochs
        return cosine(weights.lr, weights.lr_min, epoch, epochs)

    @property
    def progress(self) -> CycleProgress:
        position, cycle = self.state.position, self.state.cycle
        fraction = position.images / (cycle.epochs * self.epoch_images)
        return CycleProgress(position.epoch, cycle.epochs, cycle.grace_epochs, min(fraction, 1.0))

    def _end_epoch(self) -> None:
        state, position, epoch = self.state, self.state.position, self.state.epoch
        validation: Tally | None = None
        left = state.cycle.epochs - position.epoch
        if self.is_validated(self.config.validation.epochs, left):
            with state.timed("validation"):
                indices = self.indices["architecture"]
                validation, _ = evaluate(self, state.supernet, self.data.train, indices, "weights")
            self.probe.reset()  # the next batch size follows from training, not from this
        before = self.config.schedule.cycles[: position.cycle]
        architecture = epoch.tallies["architecture"]
        record = EpochRecord(
            cycle=position.cycle,
            epoch=position.epoch,
            total_epoch=sum(cycle.epochs for cycle in before) + position.epoch,
            grace=self.grace,
            steps=position.step,
            lr=self.lr,
            batch=self.batch.batch * self.processes.size,
            weights=score(epoch.tallies["weights"]),
            architecture=score(architecture) if architecture.images else None,
            validation=score(validation) if validation else None,
            seconds=epoch.total,
            images_per_second=epoch.tallies["weights"].images / max(epoch.total, 1e-9),
            memory=epoch.memory,
            parts=Parts(**epoch.seconds),
        )
        state.elapsed += record.seconds
        work = epoch_work(self.config, position.cycle)[position.epoch]
        state.work_done.append((work, record.seconds))
        self.record(record)
        state.next_epoch()
        with state.timed("other"):  # counts for the next epoch, as does the saving
            self.emit("on_epoch", record)
        self.save()

    # ---------------------------------------------------------------- a cycle's end

    def _end_cycle(self) -> None:
        state, position = self.state, self.state.position
        pools, weights = state.supernet.pools, self._architecture_weights()
        self.processes.check_equal(list(state.supernet.parameters()), "weights")
        decision = prune_and_replace(self.config, position.cycle, pools, weights, state.decisions)
        record = cycle_record(self.config, position.cycle, pools, weights, decision)
        self.record(record)
        start = time.perf_counter()
        self.emit("on_cycle", record, decision.pools)
        if decision.genotype is not None:
            position.done, self.genotype = True, decision.genotype
            self.record(GenotypeRecord(genotype=decision.genotype.to_json()))
        else:
            state.next_cycle(decision.change, decision.pools)
            self._compile()
            self.batch.restart()
            state.epoch.seconds["other"] += time.perf_counter() - start
            self.record_batch("start")
        self.save()

    def _architecture_weights(self) -> dict[Role, CellWeights]:
        supernet = self.state.supernet
        return {
            role: [
                edge.detach().cpu().double().tolist()
                for edge in supernet.architecture_weights(role)
            ]
            for role in ROLES
        }

    def _compile(self) -> None:
        """Compile a new supernet, if that is wanted."""
        if self.config.compute.compile:
            # Not the cells: they are computed by hand, which a compiler would only take apart.
            self.state.supernet.stem.compile(dynamic=True)

    # ---------------------------------------------------------------- events and messages

    def start_event(self) -> Start:
        state = self.state
        return Start(
            config=self.config,
            folder=self.folder.path if self.folder else None,
            device=str(self.processes.device),
            world_size=self.processes.size,
            pools=state.supernet.pools,
            num_parameters=sum(weight.numel() for weight in state.weight_parameters),
            resumed=self.resumed,
            cycle=state.position.cycle,
            epoch=state.position.epoch,
        )

    def emit_step(self, goal: int) -> None:
        position, epoch = self.state.position, self.state.epoch
        seconds = max(epoch.total, 1e-9)
        weights, architecture = epoch.tallies["weights"], epoch.tallies["architecture"]
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
            memory=epoch.memory,
            seconds_left=self._seconds_left(goal, seconds),
        )
        self.emit("on_step", step)

    def _seconds_left(self, goal: int, seconds: float) -> float | None:
        """An estimate for the whole search, from the work that is left and the speed so far."""
        position, cycles = self.state.position, range(len(self.config.schedule.cycles))
        works = [epoch_work(self.config, cycle) for cycle in cycles]
        share = 1 - max(goal - position.images, 0) / self.epoch_images
        here = works[position.cycle]
        left = (
            here[position.epoch] * (1 - share)
            + sum(here[position.epoch + 1 :])
            + sum(sum(cycle) for cycle in works[position.cycle + 1 :])
        )
        done = [*self.state.work_done, (here[position.epoch] * share, seconds)]
        return seconds_left(done, left)

    def result(self) -> SearchResult:
        assert self.genotype is not None
        records = self.all_records()
        return SearchResult(
            self.genotype,
            self.folder.path if self.folder else None,
            tuple(record for record in records if isinstance(record, EpochRecord)),
            tuple(record for record in records if isinstance(record, CycleRecord)),
            self.state.elapsed,
        )

    def step_name(self, part: str) -> str:
        return "network" if part == "weights" else part

    def advice(self, fault: str) -> str:
        if fault == "out-of-memory":
            return (
                "go on from it with --recompute, or set batch.min, channels or cells lower in a "
                "new search."
            )
        return (
            "In a new search, try a smaller weights.lr, architecture.lr or gradient_norm; and look "
            "at the data."
        )


def split_halves(config: SearchConfig, data: DataSet) -> dict[str, Tensor]:
    """Indices of the training images for the network's weights and for the architecture's."""
    generator = torch_generator(config.seed, "halves")
    used = draw_indices(config.data, data, generator)
    labels, share = data.train.labels[used], config.data.architecture_share
    weights, architecture = halves(labels, share, generator)
    return {"weights": used[weights], "architecture": used[architecture]}

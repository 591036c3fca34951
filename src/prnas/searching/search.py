"""The search's loop: epochs of architecture and weight steps, prune and replace, the genotype."""

import time
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from torch import Tensor, no_grad, stack

from prnas.config.search import SearchConfig
from prnas.data.dataset import DataSet, halves
from prnas.io.errors import UserError
from prnas.nets.relaxations import CycleProgress
from prnas.runs.checkpoint import Checkpoint
from prnas.runs.context import RunContext
from prnas.runs.evaluation import evaluate
from prnas.runs.events import SearchResult
from prnas.runs.next_training import next_training
from prnas.runs.preparation import (
    check_sizes,
    draw_indices,
    period_of,
    power_cosine,
    torch_generator,
)
from prnas.runs.records import (
    CycleRecord,
    DerivedGenotype,
    EpochRecord,
    EvaluationRecord,
    FitRecord,
    GenotypeRecord,
    Score,
    TruthRecord,
)
from prnas.runs.run import Run, Stopped
from prnas.runs.state import SavedState
from prnas.searching.curvature import CurvatureStop, measured_curvature
from prnas.searching.cycle_end import cycle_record, prune_and_replace
from prnas.searching.derived_now import derived_now, derived_record, held_back, warning
from prnas.searching.execution import SupernetExecution
from prnas.searching.judging import LEAST_HALF, Judging
from prnas.searching.limits import check_limits, final_costs
from prnas.searching.penalties import make_penalties
from prnas.searching.sequential import SequentialSelection
from prnas.searching.spending import Spending
from prnas.searching.state import SearchState
from prnas.searching.steps import make_step
from prnas.searching.supernet_scorer import CellChoice, decision_for
from prnas.searching.time_left import work_of_epochs
from prnas.searching.travel import architecture_rate, little_travel
from prnas.space.fitting import in_words
from prnas.space.genotype import Genotype
from prnas.space.nasbench201.truth import truth_of
from prnas.space.network_size import supernet_macs
from prnas.space.pools import CellWeights, Pools
from prnas.space.shape import Role
from prnas.space.worth import EdgeWorth


class Search(Run[SearchConfig, SearchState, SearchResult]):
    """A search under way."""

    config_type = SearchConfig
    weights_part = "weights"
    epoch_type = "epoch"
    memory_advice = (
        "go on from it with --recompute, or set batch.min, channels or cells lower in a new search."
    )
    not_finite_advice = (
        "In a new search, try a smaller weights.lr, architecture.lr or gradient_norm; and look at "
        "the data."
    )

    def __init__(
        self, context: RunContext[SearchConfig], checkpoint: Checkpoint | None = None
    ) -> None:
        super().__init__(context, checkpoint)
        self.validation_batch = self.config.validation.batch
        self.costs = final_costs(self.config, self.data)
        self.penalties = make_penalties(self)
        saved = checkpoint.state.get("spending") if checkpoint else None
        self.spending = Spending(self, saved)
        self.step = make_step(self)
        saved = checkpoint.state.get("step") if checkpoint else None
        if saved is not None:
            self.step.load_state(saved)
        saved = checkpoint.state.get("curvature") if checkpoint else None
        self.curvature_stop = CurvatureStop(self, saved)
        saved = checkpoint.state.get("decided") if checkpoint else None
        self.selection = SequentialSelection(self, saved)
        saved = checkpoint.state.get("execution") if checkpoint else None
        self.execution = SupernetExecution(self, saved)
        self._compile()

    @classmethod
    def prepare(cls, config: SearchConfig, data: DataSet, num_processes: int) -> dict[str, Tensor]:
        indices = split_halves(config, data)
        half, scoring = len(indices["architecture"]), config.architecture.scoring
        if scoring != "weights" and half < LEAST_HALF:
            raise UserError(
                f"architecture.scoring '{scoring}' measures on the architecture half, which has "
                f"{half} images and needs {LEAST_HALF}; raise data.architecture_share or "
                "data.images, or let architecture weights decide: architecture.step=first-order "
                "and architecture.scoring=weights"
            )
        check_sizes(config, data, len(indices["weights"]), num_processes)
        check_limits(config, data)
        return indices

    @classmethod
    def image_macs(cls, config: SearchConfig, data: DataSet) -> float:
        """Multiply-accumulates of the first cycle's supernet for an image."""
        network, first = config.network, config.schedule.cycles[0]
        return supernet_macs(
            Pools.initial(network.nodes, config.space.initial_pool, network.shape),
            first.channels or network.channels,
            first.cells or network.cells,
            data.num_classes,
            output=network.output,
            input_channels=data.shape[0],
            pixels=(data.shape[1], data.shape[2]),
            partial_channels=first.partial_channels or network.partial_channels,
        )

    def make_state(self, saved: SavedState | None) -> SearchState:
        return SearchState(self.config, self.data, self.processes, saved)

    def finish(self) -> None:
        state = self.state
        while not state.position.done:
            while state.position.epoch < state.cycle.epochs and not self._trained:
                for group in state.weights_optimizer.param_groups:
                    group["lr"] = self.lr
                state.supernet.set_skip_dropout(state.cycle.skip_dropout_in(state.position.epoch))
                self.train_epoch()
                self.end_epoch()
            self._end_cycle()
        assert state.genotype is not None
        if self.folder is not None:  # again for a finished run: resuming it repairs its result
            self.folder.write_genotype(state.genotype)

    def take_step(self) -> None:
        self.state.supernet.progress = self.progress
        self.execution.take(self.step.take)
        self.spending.end_step()

    def next_images(self, part: str) -> tuple[Tensor, Tensor]:
        self.spending.read(part, self.batch.batch * self.processes.size)
        return super().next_images(part)

    @property
    def ends_early(self) -> bool:
        return self.spending.ends()

    @property
    def budget_used(self) -> float | None:
        return self.spending.used

    @property
    def _trained(self) -> bool:
        """Whether no epoch is to follow in this cycle; one that has begun is ended properly."""
        if self.curvature_stop.stopped:
            return True
        return self.state.position.step == 0 and self.spending.ends()

    def end_epoch(self) -> None:
        spent = self.spending.spent
        try:
            super().end_epoch()
        except Stopped:
            self.spending.spent = spent  # All that ends the epoch comes again.
            raise

    def seconds_left(self, goal: int) -> float | None:
        """What the schedule would take, or the budget leaves, whichever is less."""
        left, used = super().seconds_left(goal), self.spending.used
        if left is None or not used:
            return left
        return min(left, self.spending.seconds * max(1 / used - 1, 0.0))

    @property
    def grace(self) -> bool:
        """Whether this epoch trains the network's weights only."""
        return self.state.position.epoch < self.state.cycle.grace_epochs

    @property
    def lr(self) -> float:
        weights = self.config.weights
        epoch, epochs = self.state.position.epoch, self.state.cycle.epochs
        again = (weights.restart_epochs, weights.restart_factor)
        epoch, epochs = period_of(epoch, epochs, *again)
        course = (weights.cosine_power, weights.warmup_epochs)
        return power_cosine(weights.lr, weights.lr_min, epoch, epochs, *course)

    @property
    def architecture_rate(self) -> float:
        """The learning rate of the next architecture step, at the present batch size."""
        settings, position = self.config.architecture, self.state.position
        if settings.lr != "auto":
            return settings.lr
        images_left = self.state.cycle.epochs * self.epoch_images - position.images
        batch = self.batch.batch * self.processes.size
        return architecture_rate(settings.travel - position.travelled, images_left, batch)

    def notes(self) -> tuple[tuple[str, str], ...]:
        batch = self.config.batch.min * self.processes.size
        text = None if self.resumed else little_travel(self.config, self.epoch_images, batch)
        return () if text is None else (("note", text),)

    @property
    def progress(self) -> CycleProgress:
        position, cycle = self.state.position, self.state.cycle
        fraction = position.images / (cycle.epochs * self.epoch_images)
        return CycleProgress(position.epoch, cycle.epochs, cycle.grace_epochs, min(fraction, 1.0))

    @property
    def total_epoch(self) -> int:
        cycles, position = self.config.schedule.cycles, self.state.position
        return sum(cycle.epochs for cycle in cycles[: position.cycle]) + position.epoch

    def conclude_epoch(self) -> dict[str, Any]:
        """See what genotype the architecture weights would derive; warn if skips take over."""
        state, before = self.state, self.state.derived
        with state.timed("other"), no_grad():
            supernet = state.supernet
            supernet.relaxation.progress = self.progress
            supernet.relaxation.end_epoch(supernet.all_architecture_weights())
        with state.timed(self.step.ends_with), no_grad():
            self.step.end_epoch()
        facts: dict[str, Any] = {"architecture_lr": state.epoch.architecture_lr}
        facts |= self.step.facts()
        with state.timed("validation"):
            self.selection.end_epoch()
            facts["curvature"] = measured_curvature(self)
        self.curvature_stop.add(facts["curvature"], self._architecture_weights())
        with state.timed("other"):
            pools, weights = state.supernet.pools, self._architecture_weights()
            now = derived_now(self.config, pools, weights, self.costs, self._edge_weights())
            if now is None:
                return facts
            state.derived = now
            facts["derived"] = derived_record(now, before)
            by_weights = self.config.architecture.scoring in ("weights", "blend")
            if by_weights and (text := warning(now, before, self.config)) is not None:
                when = f"cycle {state.position.cycle + 1}, epoch {state.position.epoch + 1}"
                self.emit("on_message", f"{when}: {text}")
        return facts

    def validate(self) -> dict[str, Score]:
        """Measure the supernet's score on the architecture half."""
        state = self.state
        if not self.config.validation.includes(state.position.epoch, state.cycle.epochs):
            return {}
        state.supernet.progress = self.progress  # a resumed search has taken no step yet
        with state.timed("validation"):
            indices = self.indices["architecture"]
            tally, _ = evaluate(self, self.step.validated(), self.data.train, indices)
        self.spending.add(len(indices), self.config.validation.batch)
        return {"validation": tally.score}

    def more_state(self) -> dict[str, Any]:
        step = self.step.state()
        own = {**({"step": step} if step else {}), **self.selection.state()}
        own |= self.curvature_stop.state() | self.spending.state()
        return {**super().more_state(), **self.execution.state(), **own}

    def epoch_work(self) -> list[float]:
        """The relative cost of each epoch: 0 in past cycles, then as the present pools tell."""
        number, pools = self.state.position.cycle, self.state.supernet.pools
        if self.state.position.done:
            return []
        edges = [edge for role in pools.roles for edge in pools.cell(role).edges]
        over = sum(cycle.epochs for cycle in self.config.schedule.cycles[:number])
        work = work_of_epochs(self.config, number, edges)
        return [0.0] * over + [epoch for cycle in work for epoch in cycle]

    def _end_cycle(self) -> None:
        state, position = self.state, self.state.position
        pools, weights = state.supernet.pools, self._architecture_weights()
        if (before := self.curvature_stop.before) is not None:
            weights = before
            text = "the curvature has grown: the search ends, with architecture weights from before"
            self.emit("on_message", f"epoch {state.position.epoch}: {text}")
        if self.spending.is_over:
            text = "the training has used its share of searcher.budget: cells are scored from here"
            self.emit("on_message", f"epoch {position.epoch} of {state.cycle.epochs}: {text}")
        self.processes.check_equal(list(state.supernet.parameters()), "weights")
        start = time.perf_counter()
        edges = self._edge_weights()
        judging = Judging(self, pools, weights, edges) if self._measures else None
        worths = judging.worths if judging else None
        if judging:
            self.processes.check_equal(judging.strengths(), "candidates' worth")
        # A search that is stopped while it measures decides anew: with the same random numbers.
        decisions = Random()
        decisions.setstate(state.decisions.getstate())
        rest = (pools, weights, decisions, worths, self.costs, edges)
        decision = prune_and_replace(self.config, position.cycle, *rest)
        if self._asks:
            state.choice = CellChoice(self, pools, state.saved_choice)
            decision = decision_for(pools, state.choice.genotype())
        evidence = judging.evidence(decision) if judging else None
        state.decisions = decisions
        derived, taken_over = self._derived_by(worths, pools, weights, decision.genotype)
        if self.config.derivation.max_skips:
            free = derived_now(
                self.config, pools, weights, self.costs, edges, worths, bounded=False
            )
            taken_over = taken_over or (free and held_back(free, self.config))
        measured = time.perf_counter() - start
        record = cycle_record(
            self.config, position.cycle, pools, weights, decision, evidence, edges, derived
        )
        self.probe.reset()  # the next batch size follows from training, not from this
        self.record(record)
        start = time.perf_counter()
        self.emit("on_cycle", record, decision.pools)
        if taken_over is not None:
            self.emit("on_message", f"cycle {record.cycle}: {taken_over}")
        if decision.genotype is not None:
            position.done, state.genotype = True, decision.genotype
            state.elapsed += measured
            fit = decision.fit
            fit_record = FitRecord.model_validate(fit.to_json()) if fit else None
            images = (self.data.shape, self.data.num_classes)
            then = next_training(decision.genotype, self.config, *images)
            genotype = decision.genotype.to_json()
            self.record(GenotypeRecord(genotype=genotype, fit=fit_record, next=then))
            if fit is not None:
                self.emit("on_message", "\n".join(in_words(fit)))
            if (truth := truth_of(decision.genotype)) is not None:  # all is decided by now
                self.record(TruthRecord(truth=truth.to_json()))
        else:
            state.next_cycle(decision.change, decision.pools)
            self.planned_work = self.epoch_work()
            self._compile()
            self.execution.start_cycle()
            self.step.start_cycle()
            self.batch.restart()
            state.epoch.seconds["other"] += time.perf_counter() - start
            state.epoch.seconds["validation"] += measured
            self.record_batch("start")
        self.save()

    def _derived_by(
        self,
        worths: Mapping[Role, Sequence[EdgeWorth]] | None,
        pools: Pools,
        weights: Mapping[Role, CellWeights],
        found: Genotype | None,
    ) -> tuple[DerivedGenotype | None, str | None]:
        """What measured worth would derive now, if it decides; a warning if skips take over."""
        if worths is None:
            return None, None
        rest = (self.costs, self._edge_weights(), worths)
        now = found or derived_now(self.config, pools, weights, *rest)
        if now is None:
            return None, None
        before, self.state.measured = self.state.measured, now
        by_weights = self.config.architecture.scoring == "blend"  # then every epoch has warned
        text = None if by_weights else warning(now, before, self.config)
        return derived_record(now, before), text

    @property
    def _asks(self) -> bool:
        """Whether a searcher chooses the genotype: at the end of the last cycle.

        That is the one in which its budget for training is used up, if there is such a one.
        """
        last = self.state.position.cycle == len(self.config.schedule.cycles) - 1
        last = last or self.spending.is_over
        return last and self.config.searcher.by_supernet

    @property
    def _measures(self) -> bool:
        """Whether candidates are measured at the end of a cycle."""
        if self._asks:
            return False
        if self.config.architecture.scoring != "weights":
            return True
        if not self.state.supernet.relaxation.measurable:
            return False
        enough = len(self.indices["architecture"]) >= LEAST_HALF
        return enough and self.config.evidence.measure == "auto"

    def _architecture_weights(self) -> dict[Role, CellWeights]:
        judged = self.state.supernet.judged()
        return {
            role: [edge.detach().cpu().double().tolist() for edge in cell]
            for role, cell in judged.items()
        }

    def _edge_weights(self) -> dict[Role, list[float]] | None:
        with no_grad():
            weights = self.state.supernet.edge_weights()
        if weights is None:
            return None
        return {role: stack(edges).cpu().double().tolist() for role, edges in weights.items()}

    def _compile(self) -> None:
        """Compile a new supernet, if that is wanted."""
        if self.config.compute.compile:
            # Not the cells: they are computed by hand, which a compiler would only take apart.
            self.state.supernet.stem.compile(dynamic=True)

    def start_facts(self) -> dict[str, Any]:
        parameters = sum(weight.numel() for weight in self.state.weight_parameters)
        pools = self.state.supernet.pools
        return {"config": self.config, "num_parameters": parameters, "pools": pools}

    def result(self) -> SearchResult:
        assert self.state.genotype is not None
        record = next(iter(self.records_of(GenotypeRecord)), None)
        return SearchResult(
            self.state.genotype,
            self.folder.path if self.folder else None,
            self.records_of(EpochRecord),
            self.records_of(CycleRecord),
            self.state.elapsed,
            record.fit if record else None,
            self.records_of(EvaluationRecord),
            self.config,
            record.next if record else None,
        )


def split_halves(config: SearchConfig, data: DataSet) -> dict[str, Tensor]:
    """Indices of the training images for the network's weights and for the architecture's."""
    generator = torch_generator(config.seed, "halves")
    used = draw_indices(config.data, data, generator)
    labels, share = data.train.labels[used], config.data.architecture_share
    weights, architecture = halves(labels, share, generator)
    return {"weights": used[weights], "architecture": used[architecture]}

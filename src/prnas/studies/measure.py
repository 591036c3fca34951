"""A run's first steps, measured to tell how long the whole will take."""

import math
import time
from dataclasses import dataclass, field

from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.config.sections import RunConfig
from prnas.io.errors import UserError
from prnas.retraining import api as retraining
from prnas.runs.events import Callback, RunStart, StepEvent
from prnas.searching import api as searching
from prnas.searching.steps import step_costs, step_type
from prnas.searching.time_left import VALIDATION, work_of_epochs
from prnas.studies.estimate import START_UP

WARM_UP, MEASURED = 2, 6  # Steps.


class _EnoughError(Exception):
    """Ends a run that is only measured."""


@dataclass
class _Clock(Callback):
    """The seconds of some steps of a run, per image."""

    start: RunStart | None = None
    seconds_per_image: float | None = None
    _times: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])

    def on_start(self, start: RunStart) -> None:
        self.start = start

    def on_step(self, step: StepEvent) -> None:
        self._times.append((time.perf_counter(), step.images))
        times = self._times[-MEASURED - 1 :] if len(self._times) > WARM_UP else self._times
        (began, first), (ended, last) = times[0], times[-1]
        if last > first:
            self.seconds_per_image = (ended - began) / (last - first)
        if len(self._times) >= WARM_UP + MEASURED or step.images >= step.epoch_images:
            raise _EnoughError


def measured_seconds(config: RunConfig, threads: int | None = None) -> float:
    """The estimated seconds of a run, from its first steps. Nothing is written.

    Without a number of `threads` they are as many as the run itself would take. A `UserError` says
    why it cannot be measured, such as missing images.
    """
    if isinstance(config, SearchConfig) and config.searcher.by_table:
        return START_UP  # scores are looked up
    if isinstance(config, SearchConfig) and config.searcher.without_supernet:
        return _measured_evaluation(config)
    clock = _Clock()
    if threads is not None:
        compute = config.compute.model_copy(update={"threads": threads})
        config = config.model_copy(update={"compute": compute})
    try:
        if isinstance(config, RetrainConfig):
            retraining.start(config, runs=None, callbacks=[clock])
        else:
            assert isinstance(config, SearchConfig)
            unbounded = config.override(["searcher.budget={evaluations: 1}"])
            searching.start(unbounded, runs=None, callbacks=[clock])
    except _EnoughError:
        pass
    if clock.start is None or clock.seconds_per_image is None:
        raise UserError("it has too few steps to be measured")
    seconds = clock.seconds_per_image * clock.start.train_images * _epochs(clock.start)
    if isinstance(config, SearchConfig) and config.searcher.by_supernet:
        seconds = min(seconds, _bound(config, clock.seconds_per_image))
    return START_UP + seconds


def _bound(config: SearchConfig, seconds_per_image: float) -> float:
    """The most seconds that the budget of a search on a supernet lets it take."""
    budget, batches = config.searcher.budget, step_type(config.architecture).num_batches
    bounds = [] if budget.seconds is None else [budget.seconds]
    if budget.images is not None:
        bounds.append(seconds_per_image * budget.images / batches)
    if budget.steps is not None:
        bounds.append(seconds_per_image * budget.steps * config.batch.min / batches)
    return min(bounds, default=math.inf)


def _epochs(start: RunStart) -> float:
    """The work of a whole run, in epochs of steps like the first ones."""
    config = start.config
    if isinstance(config, RetrainConfig):
        tested = sum(
            config.testing.includes(epoch, config.training.epochs)
            for epoch in range(config.training.epochs)
        )
        share = (start.test_images or 0) / start.train_images
        return config.training.epochs + VALIDATION * 2 * share * tested
    work = [epoch for cycle in work_of_epochs(config) for epoch in cycle]
    first = config.schedule.cycles[0]
    # The share of the first epoch that is steps, without its validation.
    share = config.data.architecture_share
    architecture_cost, weights_cost = step_costs(config.architecture)
    cost = weights_cost + (0.0 if first.grace_epochs else architecture_cost)
    steps = (1 - share) * cost
    validated = VALIDATION * share if config.validation.includes(0, first.epochs) else 0.0
    return sum(work) / (work[0] * steps / (steps + validated))


def _measured_evaluation(config: SearchConfig) -> float:
    """The estimated seconds of a search that scores cells one by one, from the first of them."""
    start, budget = time.perf_counter(), config.searcher.budget
    one = searching.start(config.override(["searcher.budget={evaluations: 1}"]), runs=None)
    number = budget.evaluations_for(one.evaluations[0].images) or 1
    seconds = number * (time.perf_counter() - start)
    return START_UP + (seconds if budget.seconds is None else min(seconds, budget.seconds))

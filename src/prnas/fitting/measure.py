"""The first steps of real runs, measured: what a plan is made from."""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import torch

from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.data.dataset import DataSet
from prnas.fitting.plan import SearchTimes, StepTimes
from prnas.io.errors import UserError
from prnas.models.inference import Forward, choose_device, evaluating
from prnas.models.latency import measure_latencies
from prnas.models.model import Model
from prnas.models.speed import measure, synchronizer
from prnas.report.default_callbacks import with_default_callbacks
from prnas.retraining import api as retraining
from prnas.runs.events import Callback, RetrainResult, RunStart, SearchResult, StepEvent
from prnas.runs.records import EpochRecord
from prnas.runs.run import Stopped
from prnas.searching import api as searching
from prnas.searching.cycle_end import MOST_STEPS
from prnas.searching.time_left import work_of_epochs
from prnas.space.analysis.counting import discoverable

STEPS = 5  # Steps of an epoch that is measured.
LATENCY_REPEATS = 5


class _EnoughError(Exception):
    """Ends a run that is only measured."""


@dataclass
class _Watch(Callback):
    """The moments at which things happened in a run, which it ends in its third epoch."""

    clock: Callable[[], float]
    began: float = 0.0
    ready: float = 0.0  # when the run was set up
    steps: dict[int, list[float]] = field(default_factory=dict[int, list[float]])  # by epoch
    epochs: list[EpochRecord] = field(default_factory=list[EpochRecord])

    def on_start(self, start: RunStart) -> None:
        self.ready = self.clock()

    def on_step(self, step: StepEvent) -> None:
        self.steps.setdefault(step.epoch, []).append(self.clock())
        if step.epoch >= 3:
            raise _EnoughError

    def on_epoch(self, record: EpochRecord) -> None:
        self.epochs.append(record)

    def step(self, epoch: int) -> float:
        """Seconds of a step of this epoch; the first one of all warms up and does not count."""
        times = self.steps[epoch]
        between = [later - earlier for earlier, later in pairwise(times)]
        if between:
            return median(between)
        record = self.epochs[epoch - 1]
        kinds = ("data", "training", "weights", "architecture")
        return sum(record.seconds_for.get(kind, 0.0) for kind in kinds) / max(record.steps, 1)

    def validation(self) -> float:
        """Seconds for an image."""
        record = self.epochs[-1]
        seconds = sum(record.seconds_for.get(kind, 0.0) for kind in ("testing", "validation"))
        scored = record.scores.get("validation") or record.scores.get("test")
        return seconds / scored.images if scored is not None and scored.images else 0.0

    def overhead(self, epoch: int = 2) -> float:
        """Seconds between two epochs that neither train nor validate."""
        between = self.steps[epoch + 1][0] - self.steps[epoch][-1]
        record = self.epochs[epoch - 1]
        seconds = sum(record.seconds_for.get(kind, 0.0) for kind in ("testing", "validation"))
        return max(between - seconds - self.step(epoch), 0.0)


@dataclass
class Meter:
    """Measures on this machine. Another one, for tests, says the same numbers every time."""

    clock: Callable[[], float] = time.perf_counter
    began: float | None = None

    def elapsed(self) -> float:
        """Seconds since this was first asked."""
        now = self.clock()
        if self.began is None:
            self.began = now
        return now - self.began

    def spent_on(self, result: SearchResult | RetrainResult, planned: float) -> float:
        """Seconds that a finished run took, in all its sessions."""
        return result.seconds

    def training(self, config: RetrainConfig, data: DataSet) -> StepTimes:
        """The times of this training, measured on its first steps."""
        share = 1 - config.data.validation
        images = int((STEPS * config.batch.min + data.num_classes) / share) + 1
        fewer = {"images": images if images < len(data.train) else None}
        few = config.data.model_copy(update=fewer)
        epochs = config.training.model_copy(update={"epochs": 10})
        short = config.model_copy(update={"data": few, "training": epochs})
        watch = self._watch(retraining.start, short, data)
        start = max(watch.ready - watch.began, 0.0)
        return StepTimes(watch.step(2), watch.validation(), watch.overhead(), start)

    def search(self, config: SearchConfig, data: DataSet) -> SearchTimes:
        """The times of this search, measured on the first steps of its first cycle."""
        cycles = config.schedule.cycles
        images = 2 * STEPS * config.batch.min + 2
        fewer = {"images": images if images < len(data.train) else None}
        few = config.data.model_copy(update=fewer)
        first = replace(cycles[0], epochs=10, grace_epochs=0)
        schedule = replace(config.schedule, cycles=(first, *cycles[1:]))
        short = config.model_copy(update={"data": few, "schedule": schedule})
        watch = self._watch(searching.start, short, data)
        start = max(watch.ready - watch.began, 0.0)
        work = [epochs[0] for epochs in work_of_epochs(config)]
        growth = tuple(each / work[0] for each in work)
        return SearchTimes(watch.step(2), watch.validation(), watch.overhead(), start, growth)

    def _watch(self, start: Callable[..., Any], config: Any, data: DataSet) -> _Watch:
        """Start a run in a folder that is removed again, and watch it until its third epoch."""
        watch = _Watch(self.clock, self.clock())
        with tempfile.TemporaryDirectory(prefix="prnas-measure-") as folder:
            callbacks = with_default_callbacks([watch])
            try:
                start(config, runs=Path(folder), name="measured", callbacks=callbacks, loaded=data)
            except _EnoughError:
                pass
            except Stopped as stopped:  # There is nothing to go on with.
                raise Stopped(None, stopped.number) from None
        if 3 not in watch.steps:
            raise UserError("these images are too few to be measured")
        return watch

    def latencies(self, config: SearchConfig, data: DataSet, threads: int | None) -> dict[str, Any]:
        """A table of the final network's latencies, as a config has it."""
        before = torch.get_num_threads()
        device = choose_device(config.compute.accelerator, threads or 1)  # As `latency` has it.
        channels, height, width = data.shape
        network = config.final_network(data.num_classes, (channels, height, width))
        steps = min(config.schedule.num_replacements, MOST_STEPS)
        try:
            measured = measure_latencies(
                network,
                discoverable(config.space, steps),
                device,
                output=config.network.output,
                repeats=LATENCY_REPEATS,
            )
        finally:
            torch.set_num_threads(before)
        return measured.table.to_json()

    def latency(self, model: Model, data: DataSet, threads: int | None) -> float:
        """Milliseconds of a network for one image, from normalised pixels to logits."""
        forward, before = Forward(model, 1), torch.get_num_threads()
        torch.set_num_threads(threads or 1)
        try:
            images = forward.prepared(data.test.fetch(torch.arange(1)))
            with evaluating(model), torch.inference_mode():
                timed = measure(lambda: model.network(images), 1, synchronizer(forward.device))
            return 1000 * timed.median_seconds
        finally:
            torch.set_num_threads(before)

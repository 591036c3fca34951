"""From a request to a plan: look at the images, measure, decide. Nothing is written."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from prnas.config.search import DataConfig
from prnas.data.dataset import DataSet, load
from prnas.data.survey import survey
from prnas.fitting import configs, look
from prnas.fitting.events import Listener
from prnas.fitting.folder import FitState
from prnas.fitting.measure import Meter
from prnas.fitting.plan import (
    GOOD,
    LEAST_TRAINING,
    Plan,
    Rung,
    RungTimes,
    SearchPlan,
    Task,
    decide,
    ladder,
)
from prnas.fitting.request import Request
from prnas.fitting.variants import augmentation
from prnas.io.errors import UserError
from prnas.models.card import ModelCard
from prnas.models.inference import choose_device
from prnas.models.model import read_card, size_of
from prnas.runs.named import check_has_model
from prnas.searching.limits import final_costs, unmet_limits
from prnas.space.costs import shown
from prnas.space.network_size import supernet_macs
from prnas.space.pools import Pools


class Loaded:
    """The images at one size; asked for another, they are read anew."""

    def __init__(self, request: Request, task: Task | None = None) -> None:
        self.request, self.task = request, task
        self.notes: list[str] = []
        self._size: int | None = None
        self._data: DataSet | None = None

    @property
    def device(self) -> torch.device:
        return choose_device(self.request.accelerator)

    def config(self, size: int) -> DataConfig:
        request = self.request
        facts = survey(self._plain()) if self.task is None else self.task.facts
        own = not request.data.startswith("folder:") and facts.all_are(size)
        return self._plain().model_copy(update={"image_size": None if own else size})

    def _plain(self) -> DataConfig:
        request = self.request
        return DataConfig(name=request.data, root=request.data_root, broken="skip")

    def at(self, size: int) -> DataSet:
        if self._data is None or self._size != size:
            self.close()
            self.notes.clear()
            self._data, self._size = load(self.config(size), self.device, self.notes.append), size
        return self._data

    def close(self) -> None:
        if self._data is not None:
            self._data.close()
            self._data = None


@contextmanager
def prepared(
    request: Request, meter: Meter, listener: Listener
) -> Generator[tuple[FitState, Loaded]]:
    """The first state of a fit, and its images. A `UserError` if it cannot work."""
    meter.elapsed()
    card = _card(request)
    loaded = Loaded(request)
    try:
        yield _decided(request, card, loaded, meter, listener), loaded
    finally:
        loaded.close()


def _card(request: Request) -> ModelCard | None:
    if request.start_from is None:
        return None
    check_has_model(Path(request.start_from))
    return read_card(request.start_from)


def _decided(
    request: Request, card: ModelCard | None, loaded: Loaded, meter: Meter, listener: Listener
) -> FitState:
    task = _task(request, card, loaded, listener)
    measured: dict[int, RungTimes] = {}
    tables: dict[Rung, dict[str, Any]] = {}
    while True:
        rungs = ladder(task)
        work = [_work(rung, task) for rung in rungs]
        decided = decide(task, request.seconds, meter.elapsed(), measured, work)
        if isinstance(decided, int):
            rung = rungs[decided]
            cells, channels = rung.found
            listener.on_measuring(
                f"some steps: images of {rung.size} x {rung.size}, "
                f"{cells} cells of {channels} channels"
            )
            measured[decided] = _measured(rung, task, request, card, loaded, meter)
            continue
        if request.max_latency is not None and decided.rung not in tables:
            listener.on_measuring("latencies of the final network")
            tables[decided.rung] = _latencies(decided, task, request, loaded, meter)
            continue  # With the time that this took.
        search = configs.search_config(decided, task, request, tables.get(decided.rung))
        number = rungs.index(decided.rung)
        unmet = _unmet(search, loaded.at(decided.rung.size))
        if not unmet:
            break
        if number == 0:
            raise UserError(unmet)
        task = replace(task, num_rungs=number)  # Those below are smaller.
        measured = {rung: times for rung, times in measured.items() if rung < number}
    plan, times = decided, measured[number]
    plan = replace(plan, reasons=(*plan.reasons, *augmentation(task, plan.rung.size)[1]))
    every = configs.contenders(plan.rung, task, request, card)
    return FitState(
        request,
        tuple(_sentences(task, loaded, plan.rung.size)),
        task,
        dict(times.networks),
        plan,
        search.to_data(),
        {name: contender.to_json() for name, contender in every.items()},
    )


def _latencies(
    plan: Plan, task: Task, request: Request, loaded: Loaded, meter: Meter
) -> dict[str, Any]:
    """A table of operations in the network of what is found, measured."""
    config = configs.search_config(plan, task, replace(request, max_latency=None))
    cells, channels = plan.rung.found
    final = config.final.model_copy(update={"cells": cells, "channels": channels})
    config = config.model_copy(update={"final": final})
    return meter.latencies(config, loaded.at(plan.rung.size), request.threads)


def _unmet(search: configs.SearchConfig, data: DataSet) -> str | None:
    """What to say of a limit that no network of this search could keep, if there is one."""
    costs = final_costs(search, data)
    if costs is None:
        return None
    for kind, least in unmet_limits(costs, search).items():
        limit = search.final.limits.of(kind) or 0
        return (
            f"--max-{kind}: no network that this fit could find can have at most "
            f"{shown(kind, limit)}: the smallest one has {shown(kind, least)}. Raise the limit"
        )
    return None


def _task(request: Request, card: ModelCard | None, loaded: Loaded, listener: Listener) -> Task:
    facts = survey(loaded._plain())
    size = None
    if card is not None:
        channels, size, width = card.input_shape
        if size != width:
            raise UserError(f"--from: the model takes images of {width} x {size}, not squares")
        if channels != facts.channels:
            raise UserError(
                f"--from: the model takes images of {channels} channels, {request.data} has those "
                f"of {facts.channels}"
            )
        if not configs.within(size_of(card), request):
            raise UserError("--from: the model itself does not keep the limits")
    names = configs.names_of(card)
    task = Task(facts, 0, names, size)
    loaded.task = task
    task = configs.task_within(task, request)
    data = loaded.at(ladder(task)[0].size)
    counts = torch.bincount(data.train.labels, minlength=data.num_classes).tolist()
    facts = replace(facts, class_sizes=tuple(counts))  # Without what cannot be read.
    task = replace(task, facts=facts, test_images=len(data.test))
    if task.train < LEAST_TRAINING:
        raise UserError(
            f"{task.train} pictures to train with are too few for a search: there must be at least "
            f"{LEAST_TRAINING}, beside {task.test_images} that are held out"
        )
    loaded.task = task
    listener.on_look(_sentences(task, loaded, ladder(task)[0].size))
    return task


def _sentences(task: Task, loaded: Loaded, size: int) -> list[str]:
    data = loaded.at(size)
    return look.sentences(task.facts, data, look.find_copies(data), loaded.notes)


def _work(rung: Rung, task: Task) -> float:
    """Multiply-accumulates of the supernet for an image."""
    recipe = configs.named.draft_of("pictures", (), configs.SearchConfig).config
    cells, channels = rung.search
    return float(
        supernet_macs(
            Pools.initial(recipe.network.nodes, recipe.space.initial_pool, recipe.network.shape),
            channels,
            cells,
            len(task.facts.class_sizes),
            output=recipe.network.output,
            input_channels=task.facts.channels,
            pixels=(rung.size, rung.size),
        )
    )


def _measured(
    rung: Rung,
    task: Task,
    request: Request,
    card: ModelCard | None,
    loaded: Loaded,
    meter: Meter,
) -> RungTimes:
    data = loaded.at(rung.size)
    plan = Plan(rung, SearchPlan(task.train, GOOD, 0.0), {}, 0.0, 0.0)
    unlimited = replace(request, max_params=None, max_macs=None, max_latency=None)
    search = meter.search(configs.search_config(plan, task, unlimited), data)
    networks = {
        name: meter.training(configs.training_config(contender, 10, rung.size, task, request), data)
        for name, contender in configs.contenders(rung, task, request, card).items()
        if name != configs.SEARCHED
    }
    return RungTimes(search, networks)

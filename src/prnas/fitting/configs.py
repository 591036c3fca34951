"""The configs of a fit's runs: the search, and the training of each network."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from prnas.config.choosing import LARGEST_CELL, choose
from prnas.config.retrain import DEFAULT_GENOTYPE, PLAIN, RetrainConfig
from prnas.config.search import SearchConfig
from prnas.config.sections import RunConfig
from prnas.config.undecided import Draft
from prnas.fitting.plan import (
    FINALS,
    Plan,
    Rung,
    Task,
    batch_size,
    cycle_lengths,
    usable_sizes,
)
from prnas.fitting.request import Request
from prnas.fitting.variants import augmentation
from prnas.io.errors import UserError
from prnas.models.card import ModelCard
from prnas.runs import named
from prnas.space import zoo
from prnas.space.genotype import Genotype
from prnas.space.layer_size import NetworkSize
from prnas.space.nasbench201.cells import genotype_of, index_of_string
from prnas.space.network_size import network_size
from prnas.space.resnet import RESNET, resnet_name, resnet_size

C = TypeVar("C", bound=RunConfig)
SEARCHED, ZOO, PLAIN_NETWORK, GIVEN = "found", "zoo", "plain", "given"
# Smaller networks, for limits, before those that are used without any.
SMALL_FINALS = ((3, 4), (3, 8))
# Blocks and channels of plain networks: resnet8 with few and more channels, resnet14, resnet20.
PLAIN_SIZES = ((3, 4), (3, 8), (3, 16), (3, 32), (6, 32), (9, 32))


@dataclass(frozen=True)
class Contender:
    """A network that is trained and compared. `genotype`: `None` of a plain or unknown one."""

    name: str
    label: str  # For people.
    genotype: Genotype | None
    network: dict[str, Any]  # Keys of the config's section `network`.

    def to_json(self) -> dict[str, Any]:
        genotype = None if self.genotype is None else self.genotype.to_json()
        return {"name": self.name, "label": self.label, "genotype": genotype} | {
            "network": self.network
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Contender":
        genotype = data["genotype"]
        cells = None if genotype is None else Genotype.from_json(genotype)
        return cls(data["name"], data["label"], cells, dict(data["network"]))


def names_of(card: ModelCard | None) -> tuple[str, ...]:
    """The networks to train; a model to start from stands for one that was not searched."""
    if card is None:
        return (SEARCHED, ZOO, PLAIN_NETWORK)
    return (SEARCHED, GIVEN, ZOO) if card.kind == RESNET else (SEARCHED, GIVEN, PLAIN_NETWORK)


def contenders(
    rung: Rung,
    task: Task,
    request: Request,
    card: ModelCard | None,
    genotype: Genotype | None = None,
) -> dict[str, Contender]:
    """All networks on a rung; the found one has no genotype before it is found."""

    def of_cells(size: tuple[int, int]) -> dict[str, Any]:
        return {"kind": "cells", "cells": size[0], "channels": size[1]}

    published = zoo.get(DEFAULT_GENOTYPE)
    every: dict[str, Contender] = {
        SEARCHED: Contender(SEARCHED, "found by the search", genotype, of_cells(rung.found)),
        ZOO: Contender(ZOO, f"{DEFAULT_GENOTYPE}, published", published, of_cells(rung.final)),
    }
    names = names_of(card)
    if PLAIN_NETWORK in names:
        every[PLAIN_NETWORK] = _plain(rung, task, request)
    if card is not None:
        every[GIVEN] = Contender(
            GIVEN, f"from the weights of {request.start_from}", card.genotype, _of_card(card)
        )
        every[GIVEN].network["start_from"] = request.start_from
    return {name: every[name] for name in names}


def _of_card(card: ModelCard) -> dict[str, Any]:
    keys = ("kind", "cells", "channels", "stem", "output")
    plain = dict(PLAIN) if card.kind == RESNET else {}
    return plain | {key: getattr(card, key) for key in keys}


def _plain(rung: Rung, task: Task, request: Request) -> Contender:
    """The largest plain network that computes no more than any that the search may find.

    It must keep the limits, too. So it is trained for about as many epochs in the same time.
    """
    facts, size = task.facts, rung.size
    most = largest_found(rung, task).macs
    sizes: dict[tuple[int, int], NetworkSize] = {}
    for blocks, channels in PLAIN_SIZES:
        sizes[blocks, channels] = resnet_size(
            channels,
            blocks,
            len(facts.class_sizes),
            input_channels=facts.channels,
            image_size=size,
        )
    allowed = [key for key, cost in sizes.items() if within(cost, request)]
    if not allowed:
        raise UserError("no plain network keeps the limits: raise --max-params or --max-macs")
    fitting = [key for key in allowed if sizes[key].macs <= most]
    blocks, channels = fitting[-1] if fitting else allowed[0]
    network = {**PLAIN, "kind": RESNET, "cells": blocks, "channels": channels}
    return Contender(
        PLAIN_NETWORK, f"{resnet_name(blocks)}, plain, {channels} channels", None, network
    )


def largest_found(rung: Rung, task: Task) -> NetworkSize:
    """The size of the network of the largest cell in the space of the search."""
    return _size_of(genotype_of(index_of_string(LARGEST_CELL)), rung.found, rung.size, task)


def zoo_size(final: tuple[int, int], size: int, task: Task) -> NetworkSize:
    return _size_of(zoo.get(DEFAULT_GENOTYPE), final, size, task)


def _size_of(genotype: Genotype, network: tuple[int, int], size: int, task: Task) -> NetworkSize:
    cells, channels = network
    return network_size(
        genotype,
        channels,
        cells,
        len(task.facts.class_sizes),
        input_channels=task.facts.channels,
        image_size=size,
    )


def within(cost: NetworkSize, request: Request) -> bool:
    """Whether a network keeps the limits on parameters and multiply-accumulates."""
    return request.allows(cost.parameters, cost.macs)


def finals_within(size: int, task: Task, request: Request) -> tuple[tuple[int, int], ...]:
    """Sizes of networks of cells that keep the limits with published cells: perhaps none.

    Where no published cell is trained, there is always one, the smallest.
    """
    if request.max_params is None and request.max_macs is None:
        return FINALS
    every = (*SMALL_FINALS, *FINALS)
    fitting = [final for final in every if within(zoo_size(final, size, task), request)]
    if not fitting:
        return () if ZOO in task.contenders else every[:1]
    usual = tuple(final for final in fitting if final in FINALS)
    return usual or (fitting[-1],)


def task_within(task: Task, request: Request) -> Task:
    """The task with sizes of images and of networks that keep the limits."""
    if not request.limits:
        return task
    task, sizes = replace(task, limited=True), usable_sizes(task)
    for size in reversed(sizes):
        if finals := finals_within(size, task, request):
            return replace(task, finals=finals, most_size=None if size == sizes[-1] else size)
    least = zoo_size(SMALL_FINALS[0], sizes[0], task)
    raise UserError(
        "the limits are too low: the smallest network of the published cell, which is trained "
        f"for comparison, has {least.parameters:,} parameters and {least.macs:,} "
        "multiply-accumulates"
    )


# ---------------------------------------------------------------- configs


def _images(request: Request, size: int, task: Task) -> dict[str, Any]:
    own = not request.data.startswith("folder:") and task.facts.all_are(size)
    return {
        "data.name": request.data,
        "data.root": request.data_root,
        "data.image_size": None if own else size,
        "data.broken": "skip",
        "seed": request.seed,
        "compute.accelerator": request.accelerator,
        "compute.threads": request.threads,
    }


def search_config(
    plan: Plan, task: Task, request: Request, latency: dict[str, Any] | None = None
) -> SearchConfig:
    """The search of the plan; `latency` is a table of the final network's, if it is limited."""
    images = plan.search.images
    cells, channels = plan.rung.search
    batch = max(min(task.search_batch, images // 4), 1)
    values = _images(request, plan.rung.size, task) | {
        "data.images": None if images >= task.train else images,
        "network.cells": cells,
        "network.channels": channels,
        "batch.min": batch,
        "batch.max": batch,
    }
    for number, epochs in enumerate(cycle_lengths(plan.search.epochs)):
        values[f"schedule.cycles.{number}.epochs"] = epochs
        values[f"schedule.cycles.{number}.grace_epochs"] = 0  # No architecture weights to spare.
    if request.limits:
        cells, channels = plan.rung.found
        values |= {"final.cells": cells, "final.channels": channels}
        values |= {f"final.{name}": limit for name, limit in request.limits.items()}
    if latency is not None:
        values["final.latency"] = latency
    draft = named.draft_of("pictures", (), SearchConfig)
    return _settled(SearchConfig.draft(_put(draft.to_data(), values)), task)


def training_config(
    contender: Contender, epochs: int, size: int, task: Task, request: Request
) -> RetrainConfig:
    """The training of a network, on the same images as that of all others."""
    assert contender.genotype is not None or contender.network["kind"] == RESNET
    batch = batch_size(task.training_images)
    values = _images(request, size, task) | {
        "training.epochs": epochs,
        "training.keep": "best",
        "data.validation": task.validation,
        "batch.min": batch,
        "batch.max": batch,
        **augmentation(task, size)[0],
    }
    what = named.Trainable(contender.genotype, contender.network)
    draft = named.draft_of("retrain-pictures", (), RetrainConfig)
    data = what.put_into(draft.to_data())
    return _settled(RetrainConfig.draft(_put(data, values)), task)


def _settled(draft: Draft[C], task: Task) -> C:
    """The config of a draft, with open values chosen by the images: flips, shifts, cutout."""
    return draft.settled(choose(draft, task.facts).values)


def _put(data: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Plain data of a config with values by their keys, of which every one is there."""
    for key, value in values.items():
        *path, last = key.split(".")
        section: Any = data
        for name in path:
            section = section[int(name)] if isinstance(section, list) else section[name]
        if last not in section:
            raise KeyError(key)
        section[last] = value
    return data

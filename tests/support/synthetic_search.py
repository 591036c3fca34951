"""A search that trains nothing: its events and records, for what shows or writes them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

from prnas.config import recipes
from prnas.config.search import SearchConfig
from prnas.runs.events import Callback, RunStart, SearchResult, StepEvent, Validating
from prnas.runs.records import BatchRecord, CycleRecord, DerivedGenotype, EpochRecord, Score
from prnas.space import zoo
from prnas.space.analysis.statistics import (
    PoolStatistics,
    average_statistics,
    cell_statistics,
    edge_statistics,
)
from prnas.space.change import Change
from prnas.space.derivation import derive
from prnas.space.morphisms import MORPHISMS
from prnas.space.operations import OPERATIONS
from prnas.space.pools import Pools
from prnas.space.shape import Role
from tests.support.strategies import random_weights

STEPS = 4
SECONDS_FOR = {
    "data": 0.5,
    "architecture": 1.0,
    "weights": 2.0,
    "validation": 0.5,
    "saving": 0.25,
    "other": 0.25,
}


def quick(*overrides: str) -> SearchConfig:
    return SearchConfig.from_data(recipes.any_recipe("quick").to_data(), overrides)


def epoch_record(config: SearchConfig, cycle: int, epoch: int, **changes: Any) -> EpochRecord:
    settings = config.schedule.cycles[cycle]
    grace = epoch < settings.grace_epochs
    total = sum(before.epochs for before in config.schedule.cycles[:cycle]) + epoch
    better = total / config.schedule.num_epochs
    scores = {
        "weights": Score(loss=2.3 - better, accuracy=0.1 + 0.8 * better, images=719),
        "architecture": Score(loss=2.4 - better, accuracy=0.1 + 0.7 * better, images=719),
        "validation": Score(loss=2.5 - better, accuracy=0.1 + 0.6 * better, images=718),
    }
    if grace:
        del scores["architecture"]
    fields: dict[str, Any] = {
        "type": "epoch",
        "cycle": cycle + 1,
        "epoch": epoch + 1,
        "total_epoch": total + 1,
        "grace": grace,
        "steps": STEPS,
        "lr": 0.025 - 0.015 * epoch / settings.epochs,
        "architecture_lr": None if grace else 0.05,
        "derived": None if grace else _derived(total),
        "batch": 64,
        "scores": scores,
        "seconds": 4.5,
        "images_per_second": 1234.5,
        "memory": 1.25e9,
        "seconds_for": SECONDS_FOR,
    }
    return EpochRecord(**{**fields, **changes})


def _derived(total: int) -> DerivedGenotype:
    """One of two genotypes, in turn."""
    return DerivedGenotype(
        genotype=zoo.get(("darts-v1", "darts-v2")[total % 2]).to_json(),
        edits=6 if total > 1 else None,
        skips={"normal": 0.25, "reduction": 0.125 * (total % 9)},
    )


def evolve(config: SearchConfig, cycle: int, pools: Pools, generator: Random) -> Change:
    settings = config.schedule.cycles[cycle]
    weights: dict[Role, list[list[float]]] = {
        role: random_weights(pools.cell(role), generator) for role in pools.roles
    }
    if cycle == len(config.schedule.cycles) - 1:
        return derive(pools, weights, generator)[1]
    limits = config.space.limits
    rule = (settings.survivors, settings.morphisms, limits, generator)
    return Change.of(
        {role: pools.cell(role).evolve(weights[role], *rule)[1] for role in pools.roles}
    )


def _plain(statistics: PoolStatistics) -> dict[str, Any]:
    data = asdict(statistics)
    return {**data, "kernels": {str(size): share for size, share in data["kernels"].items()}}


def cycle_record(cycle: int, before: Pools, change: Change, after: Pools) -> CycleRecord:
    statistics: dict[str, Any] = {
        "average": _plain(average_statistics(after, change)),
        "discoverable": 15,
    }
    for role in after.roles:
        pairs = zip(after.cell(role).edges, change.cell(role).edges, strict=True)
        statistics[role] = {
            "cell": _plain(cell_statistics(after.cell(role), change.cell(role))),
            "edges": [_plain(edge_statistics(*pair)) for pair in pairs],
        }
    return CycleRecord(
        cycle=cycle + 1,
        pools={
            role: [[op.label for op in pool.candidates] for pool in before.cell(role).edges]
            for role in before.roles
        },
        architecture_weights={
            role: [[0.0] * len(pool.candidates) for pool in before.cell(role).edges]
            for role in before.roles
        },
        change=change.to_json(),
        statistics=statistics,
    )


def start_of(config: SearchConfig, folder: Path | None, **changes: Any) -> RunStart:
    fields: dict[str, Any] = {
        "config": config,
        "folder": folder,
        "device": "cpu",
        "world_size": 1,
        "pools": Pools.initial(
            config.network.nodes, config.space.initial_pool, config.network.shape
        ),
        "num_parameters": 123_456,
        "train_images": 719,
        "resumed": False,
        "cycle": 1,
        "epoch": 1,
    }
    return RunStart(**{**fields, **changes})


def play(
    callbacks: Sequence[Callback],
    config: SearchConfig | None = None,
    folder: Path | None = None,
    cycles: int | None = None,
) -> SearchResult:
    """Tell the callbacks of a whole search, or of its first cycles only."""
    config = config or quick()
    result = SearchResult(zoo.get("pr-darts-dl2"), folder, (), (), 200.0)
    for name, event in events(config, folder, cycles):
        for callback in callbacks:
            getattr(callback, name)(*event)
        if name == "on_epoch":
            result = SearchResult(result.genotype, folder, (*result.epochs, event[0]), (), 200.0)
    if cycles is None:
        for callback in callbacks:
            callback.on_end(result)
    for callback in callbacks:
        callback.close()
    return result


def events(
    config: SearchConfig, folder: Path | None, cycles: int | None = None
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    yield "on_start", (start_of(config, folder),)
    cycle_ends = _cycles(config)
    for cycle, settings in enumerate(config.schedule.cycles[:cycles]):
        batch = BatchRecord(cycle=cycle + 1, epoch=1, step=1, batch=64, reason="start")
        yield "on_batch", (batch,)
        for epoch in range(settings.epochs):
            record = epoch_record(config, cycle, epoch)
            for step in range(STEPS):
                yield "on_step", (step_of(record, step, config),)
            for images in (360, 718):
                yield "on_validating", (Validating(images, 718),)
            yield "on_epoch", (record,)
        yield "on_cycle", cycle_ends[cycle]


_PLAYED: dict[str, list[tuple[CycleRecord, Pools]]] = {}


def _cycles(config: SearchConfig) -> list[tuple[CycleRecord, Pools]]:
    """The end of each cycle; played once for all configs that say the same of pools."""
    plain = config.to_data()
    said = [plain[name] for name in ("schedule", "space", "network")]
    key = json.dumps([*said, sorted(OPERATIONS), sorted(MORPHISMS)])
    if key not in _PLAYED:
        generator = Random(0)
        pools = start_of(config, None).pools
        assert pools is not None
        played: list[tuple[CycleRecord, Pools]] = []
        for cycle in range(len(config.schedule.cycles)):
            change = evolve(config, cycle, pools, generator)
            before, pools = pools, pools.apply(change)
            played.append((cycle_record(cycle, before, change, pools), pools))
        _PLAYED[key] = played
    return _PLAYED[key]


def step_of(record: EpochRecord, step: int, config: SearchConfig) -> StepEvent:
    return StepEvent(
        cycle=record.cycle,
        epoch=record.epoch,
        grace=record.grace,
        step=step,
        images=719 * (step + 1) // STEPS,
        epoch_images=719,
        lr=record.lr,
        batch=record.batch,
        scores={name: score for name, score in record.scores.items() if name != "validation"},
        images_per_second=record.images_per_second,
        memory=record.memory,
        seconds_left=4.5 * (config.schedule.num_epochs + 1 - record.total_epoch) if step else None,
    )

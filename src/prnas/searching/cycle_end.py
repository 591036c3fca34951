"""The end of a cycle: what the architecture weights decide, and the record of it."""

from collections.abc import Mapping
from dataclasses import asdict
from random import Random
from typing import Any

from prnas.config.search import SearchConfig
from prnas.runs.records import CycleRecord
from prnas.space.analysis.counting import discoverable
from prnas.space.analysis.statistics import average_statistics, cell_statistics, edge_statistics
from prnas.space.change import Change
from prnas.space.derivation import derive
from prnas.space.genotype import ROLES, Genotype, Role
from prnas.space.pools import CellWeights, Pools

MOST_STEPS = 12  # of morphing that are counted; without limits the numbers explode


def decide(
    config: SearchConfig,
    number: int,
    pools: Pools,
    weights: Mapping[Role, CellWeights],
    generator: Random,
) -> tuple[Change, Genotype | None]:
    """Prune and replace after cycle `number`; the last one ends in the genotype."""
    cycle = config.schedule.cycles[number]
    if number == len(config.schedule.cycles) - 1:
        bounds: dict[Role, int | None] = {
            "normal": config.derivation.max_skips_normal,
            "reduction": config.derivation.max_skips_reduction,
        }
        most: dict[Role, int] = {role: bound for role, bound in bounds.items() if bound is not None}
        genotype, change = derive(pools, weights, generator, most)
        return change, genotype
    changes = [
        pools.cell(role).evolve(
            weights[role], cycle.survivors, cycle.morphisms, config.space.limits, generator
        )[1]
        for role in ROLES
    ]
    return Change(*changes), None


def cycle_record(
    config: SearchConfig,
    number: int,
    pools: Pools,
    weights: Mapping[Role, CellWeights],
    change: Change,
) -> CycleRecord:
    """`pools` and `weights` are those that the cycle trained."""
    return CycleRecord(
        cycle=number,
        pools={
            role: [[op.label for op in one.candidates] for one in pools.cell(role).edges]
            for role in ROLES
        },
        architecture={role: [list(one) for one in weights[role]] for role in ROLES},
        change=change.to_json(),
        statistics=_statistics(pools.apply(change), change, config),
    )


def _statistics(pools: Pools, change: Change, config: SearchConfig) -> dict[str, Any]:
    """The spec's statistics after a cycle: on average, for each cell and for each edge."""

    def plain(one: Any) -> dict[str, Any]:
        data = asdict(one)
        data["kernels"] = {str(size): share for size, share in data["kernels"].items()}
        return data

    found: dict[str, Any] = {"average": plain(average_statistics(pools, change))}
    for role in ROLES:
        cell, changes = pools.cell(role), change.cell(role)
        pairs = zip(cell.edges, changes.edges, strict=True)
        found[role] = {
            "cell": plain(cell_statistics(cell, changes)),
            "edges": [plain(edge_statistics(*pair)) for pair in pairs],
        }
    steps = config.schedule.num_replacements
    reached = discoverable(config.space, steps) if steps <= MOST_STEPS else None
    found["discoverable"] = None if reached is None else len(reached)
    return found

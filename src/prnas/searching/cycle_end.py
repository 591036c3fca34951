"""The end of a cycle: prune and replace, or the genotype; and the record of it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from prnas.config.architecture import RELAXATIONS
from prnas.config.search import SearchConfig
from prnas.runs.records import CycleRecord, DerivedGenotype, Evidence
from prnas.space.analysis.counting import discoverable
from prnas.space.analysis.statistics import average_statistics, cell_statistics, edge_statistics
from prnas.space.change import CellChange, Change
from prnas.space.costs import Costs
from prnas.space.derivation import derive
from prnas.space.fitting import Fit, derive_fitting
from prnas.space.genotype import Genotype
from prnas.space.pools import CellPools, CellWeights, Pools
from prnas.space.shape import Role
from prnas.space.worth import EdgeWorth

# Morphing steps that are counted at most: without limits on the space, the numbers explode.
MOST_STEPS = 12


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of architecture weights, or of measured worth, at the end of a cycle."""

    change: Change
    pools: Pools  # after the change
    genotype: Genotype | None  # after the last cycle
    fit: Fit | None = None  # what limits on the final network made of it


def prune_and_replace(
    config: SearchConfig,
    number: int,
    pools: Pools,
    weights: Mapping[Role, CellWeights],
    generator: Random,
    worths: Mapping[Role, Sequence[EdgeWorth]] | None = None,
    costs: Costs | None = None,
    edge_weights: Mapping[Role, Sequence[float]] | None = None,
) -> Decision:
    """Prune and replace what cycle `number`, from 0, trained; the last one ends in the genotype.

    Measured `worths`, if there are any, judge the candidates instead of the weights. `costs` are
    those of the final network, which a config with limits on it needs. Edges that have weights of
    their own count by them in the choice of a node's inputs.
    """
    cycle = config.schedule.cycles[number]
    scores = RELAXATIONS[config.architecture.relaxation]
    if number == len(config.schedule.cycles) - 1:
        most_skips, output = config.derivation.max_skips, config.network.output
        rest = (most_skips, scores, output, worths, edge_weights)
        if costs is None or not config.final.limits:
            genotype, change = derive(pools, weights, generator, *rest)
            return Decision(change, pools.apply(change), genotype)
        limits = config.final.limits
        genotype, change, fit = derive_fitting(pools, weights, generator, costs, limits, *rest)
        return Decision(change, pools.apply(change), genotype, fit)
    rule = (cycle.survivors, cycle.morphisms, config.space.limits, generator)
    evolved: dict[Role, tuple[CellPools, CellChange]] = {
        role: pools.cell(role).evolve(
            weights[role],
            *rule,
            scores=scores,
            worths=worths[role] if worths else None,
            protect_conv=cycle.protect_conv,
        )
        for role in pools.roles
    }
    after = Pools.of({role: cell for role, (cell, _) in evolved.items()})
    change = Change.of({role: cell_change for role, (_, cell_change) in evolved.items()})
    return Decision(change, after, None)


def cycle_record(
    config: SearchConfig,
    number: int,
    pools: Pools,
    weights: Mapping[Role, CellWeights],
    decision: Decision,
    evidence: Evidence | None = None,
    edge_weights: Mapping[Role, Sequence[float]] | None = None,
    derived: DerivedGenotype | None = None,
) -> CycleRecord:
    """`pools` and `weights` are those that cycle `number`, from 0, trained."""
    return CycleRecord(
        cycle=number + 1,
        pools={
            role: [[op.label for op in edge.candidates] for edge in pools.cell(role).edges]
            for role in pools.roles
        },
        architecture_weights={role: [list(edge) for edge in weights[role]] for role in pools.roles},
        change=decision.change.to_json(),
        statistics=_statistics(decision.pools, decision.change, config),
        evidence=evidence,
        edge_weights=None
        if edge_weights is None
        else {role: list(edges) for role, edges in edge_weights.items()},
        derived=derived,
    )


def _statistics(pools: Pools, change: Change, config: SearchConfig) -> dict[str, Any]:
    """The spec's statistics after a cycle: on average, for each cell and for each edge."""

    def plain(statistics: Any) -> dict[str, Any]:
        data = asdict(statistics)
        data["kernels"] = {str(size): share for size, share in data["kernels"].items()}
        return data

    result: dict[str, Any] = {"average": plain(average_statistics(pools, change))}
    for role in pools.roles:
        cell, changes = pools.cell(role), change.cell(role)
        pairs = zip(cell.edges, changes.edges, strict=True)
        result[role] = {
            "cell": plain(cell_statistics(cell, changes)),
            "edges": [plain(edge_statistics(*pair)) for pair in pairs],
        }
    steps = config.schedule.num_replacements
    reached = discoverable(config.space, steps) if steps <= MOST_STEPS else None
    result["discoverable"] = None if reached is None else len(reached)
    return result

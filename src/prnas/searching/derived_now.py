"""The genotype that the architecture weights say now: how steady it is, how much of it are skips.

Epoch by epoch it shows whether a search settles. Architecture weights that are trained too long or
too fast tend to prefer skips until the cells are made of little else: DARTS's known collapse.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from math import isfinite
from random import Random

from prnas.config.architecture import RELAXATIONS, SAMPLING, ArchitectureConfig
from prnas.config.search import SearchConfig
from prnas.runs.records import DerivedGenotype
from prnas.space.analysis.distance import edit_distance
from prnas.space.costs import Costs
from prnas.space.derivation import derive
from prnas.space.fitting import derive_fitting
from prnas.space.genotype import Genotype, Role
from prnas.space.operations import Skip
from prnas.space.pools import CellWeights, Pools
from prnas.space.worth import EdgeWorth

MOST_NODES = 8  # Between cells of more, the edit distance takes seconds.
TAKEN_OVER = 0.5  # Largest share of skips among a cell's operations.


def derived_now(
    config: SearchConfig,
    pools: Pools,
    weights: Mapping[Role, CellWeights],
    costs: Costs | None = None,
    edge_weights: Mapping[Role, Sequence[float]] | None = None,
    worths: Mapping[Role, Sequence[EdgeWorth]] | None = None,
    bounded: bool = True,
) -> Genotype | None:
    """The genotype by the weights as they are; `None` while they are equal, as in grace epochs.

    Or by measured `worths`, at a cycle's end. Not `bounded`: as if there were no bound on skips.

    Ties are broken always in the same way, and nothing random of the search is used. Where the
    config has limits on the final network, `costs` are those of its operations.
    """
    edges = [edge for role in pools.roles for edge in weights[role]]
    if worths is None and all(len(set(edge)) == 1 for edge in edges):
        return None
    if not all(map(isfinite, chain(*edges))):
        return None  # the search is about to end because of that
    scores = RELAXATIONS[config.architecture.relaxation]
    output = config.network.output
    max_skips = config.derivation.max_skips if bounded else {}
    rest = (max_skips, scores, output, worths, edge_weights)
    if costs is not None and (limits := config.final.limits):
        return derive_fitting(pools, weights, Random(0), costs, limits, *rest)[0]
    return derive(pools, weights, Random(0), *rest)[0]


def derived_record(genotype: Genotype, before: Genotype | None) -> DerivedGenotype:
    """`before`: the one of the last epoch that had one."""
    few = genotype.normal.num_nodes <= MOST_NODES
    return DerivedGenotype(
        genotype=genotype.to_json(),
        edits=edit_distance(before, genotype) if before is not None and few else None,
        skips={role: _share(genotype, role) for role in genotype.roles},
    )


def warning(genotype: Genotype, before: Genotype | None, config: SearchConfig) -> str | None:
    """A sentence when skips have taken over a cell since the one before, with what helps."""
    taken: list[Role] = [
        role
        for role in genotype.roles
        if _share(genotype, role) > TAKEN_OVER
        and (before is None or _share(before, role) <= TAKEN_OVER)
    ]
    if not taken:
        return None
    bounds = " and ".join(f"derivation.max_skips_{role}" for role in taken)
    options = [f"{bounds} (P-DARTS: 2)", *_options(config.architecture)]
    return (
        f"skips take over: they would be {_in_cells(genotype, taken)} if the search ended now. "
        f"Options against it, in a new search: {', '.join(options)}"
    )


def held_back(unbounded: Genotype, config: SearchConfig) -> str | None:
    """A sentence when only the bound on skips keeps them from taking over a cell."""
    taken: list[Role] = [
        role for role in config.derivation.max_skips if _share(unbounded, role) > TAKEN_OVER
    ]
    if not taken:
        return None
    return (
        f"only the bound on skips holds them back: without it they would be "
        f"{_in_cells(unbounded, taken)}. What may help, in a new search: "
        f"{', '.join(_options(config.architecture))}"
    )


def _in_cells(genotype: Genotype, roles: Sequence[Role]) -> str:
    return " and ".join(
        "{} of the {} operations of the {} cell".format(*_skips(genotype, role), role)
        for role in roles
    )


def _options(settings: ArchitectureConfig) -> list[str]:
    """What helps against skips, apart from a bound on them."""
    if settings.step in ("none", *SAMPLING):  # skips look best before the others have learnt
        return ["more epochs in the first cycles", "more images"]
    options = ["skip_dropout in the schedule's cycles", "more grace_epochs"]
    options.append(f"a smaller {settings.mover}")
    return [*options, *(["architecture.scoring=removal"] if settings.scoring == "weights" else [])]


def _skips(genotype: Genotype, role: Role) -> tuple[int, int]:
    """The numbers of a cell's skips and of all its operations."""
    operations = genotype.cell(role).operations
    return sum(isinstance(op, Skip) for op in operations), len(operations)


def _share(genotype: Genotype, role: Role) -> float:
    skips, of_operations = _skips(genotype, role)
    return skips / of_operations

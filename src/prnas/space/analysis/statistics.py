"""What a search's state looks like in numbers: pure functions on pools and changes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from prnas.space.change import CellChange, Change, EdgeChange
from prnas.space.edge_pool import EdgePool
from prnas.space.genotype import ROLES
from prnas.space.operations import CATEGORIES, Conv, Operation
from prnas.space.pools import CellPools, Pools

# The categories that shares always name; others are named where there are any. So an operation that
# a search does not use leaves its records as they are.
ALWAYS_NAMED = ("conv", "pool", "skip", "zero")


def type_shares(operations: Sequence[Operation]) -> dict[str, float]:
    """The share of each category of operations; they add up to 1."""
    counts = Counter(op.category for op in operations)
    named = [name for name in CATEGORIES if name in ALWAYS_NAMED or counts[name]]
    return {name: counts[name] / len(operations) for name in named}


def kernel_shares(operations: Iterable[Operation]) -> dict[int, float]:
    """The share of each kernel size among the convolutions; empty without any."""
    counts = Counter(op.kernel for op in operations if isinstance(op, Conv))
    return {kernel: counts[kernel] / counts.total() for kernel in sorted(counts)}


def pool_similarity(operations: Sequence[Operation]) -> float | None:
    """The mean similarity over all pairs; `None` for fewer than two candidates."""
    pairs = [one.similarity(other) for one, other in combinations(operations, 2)]
    return fmean(pairs) if pairs else None


def parent_probability(changes: Iterable[EdgeChange]) -> float | None:
    """The mean probability that the drawn parents had; `None` when no child was added."""
    drawn = [one.parent_probability for change in changes for one in change.added]
    return fmean(drawn) if drawn else None


def discovered(cell: CellPools) -> frozenset[Operation]:
    """Every operation that any edge of the cell has ever held."""
    return frozenset(op for pool in cell.edges for op in pool.ever_held)


@dataclass(frozen=True, slots=True)
class PoolStatistics:
    """The statistics of one pool, of a cell's pools together, or the mean over cells."""

    num_candidates: float
    types: dict[str, float]
    kernels: dict[int, float]
    similarity: float | None
    parent_probability: float | None
    num_discovered: float


def edge_statistics(pool: EdgePool, change: EdgeChange | None = None) -> PoolStatistics:
    """One edge. `change` is the one that led to the pool, if any."""
    return PoolStatistics(
        num_candidates=len(pool.candidates),
        types=type_shares(pool.candidates),
        kernels=kernel_shares(pool.candidates),
        similarity=pool_similarity(pool.candidates),
        parent_probability=parent_probability([change] if change else []),
        num_discovered=len(pool.ever_held),
    )


def cell_statistics(cell: CellPools, change: CellChange | None = None) -> PoolStatistics:
    """One cell: shares over all its candidates, similarity as the mean over its edges."""
    everyone = [op for pool in cell.edges for op in pool.candidates]
    similarities = [pool_similarity(pool.candidates) for pool in cell.edges]
    return PoolStatistics(
        num_candidates=len(everyone) / len(cell.edges),
        types=type_shares(everyone),
        kernels=kernel_shares(everyone),
        similarity=_mean(similarities),
        parent_probability=parent_probability(change.edges if change else ()),
        num_discovered=len(discovered(cell)),
    )


def mean_statistics(parts: Sequence[PoolStatistics]) -> PoolStatistics:
    """The mean of several statistics; what a part does not have, it does not count for."""
    with_kernels = [part.kernels for part in parts if part.kernels]
    sizes = sorted({size for kernels in with_kernels for size in kernels})
    names = [name for name in CATEGORIES if any(name in part.types for part in parts)]
    return PoolStatistics(
        num_candidates=fmean(part.num_candidates for part in parts),
        types={name: fmean(part.types.get(name, 0.0) for part in parts) for name in names},
        kernels={size: fmean(kernels.get(size, 0.0) for kernels in with_kernels) for size in sizes},
        similarity=_mean([part.similarity for part in parts]),
        parent_probability=_mean([part.parent_probability for part in parts]),
        num_discovered=fmean(part.num_discovered for part in parts),
    )


def average_statistics(pools: Pools, change: Change | None = None) -> PoolStatistics:
    """The mean over both cells. `change` is the one that led to the pools, if any."""
    return mean_statistics(
        [cell_statistics(pools.cell(role), change.cell(role) if change else None) for role in ROLES]
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None

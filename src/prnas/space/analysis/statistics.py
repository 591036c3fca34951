"""Statistics of a search: pure functions of pools and changes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean

from prnas.space.change import CellChange, Change, EdgeChange
from prnas.space.edge_pool import EdgePool
from prnas.space.operations import CATEGORIES, Convolution, Operation
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
    counts = Counter(op.kernel for op in operations if isinstance(op, Convolution))
    return {kernel: counts[kernel] / counts.total() for kernel in sorted(counts)}


def pool_similarity(operations: Sequence[Operation]) -> float | None:
    """The mean over all ordered pairs, a candidate with itself included; `None` without any."""
    return mean(first.similarity(second) for first, second in product(operations, repeat=2))


def parent_probability(changes: Iterable[EdgeChange]) -> float | None:
    """The mean probability that the drawn parents had; `None` when no child was added."""
    return mean(child.parent_probability for change in changes for child in change.added)


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
    statistics = _statistics([pool], [change] if change else [])
    return replace(statistics, num_candidates=len(pool.candidates))  # a whole number


def cell_statistics(cell: CellPools, change: CellChange | None = None) -> PoolStatistics:
    """One cell: shares over all its candidates, similarity as the mean over its edges."""
    return _statistics(cell.edges, change.edges if change else ())


def _statistics(pools: Sequence[EdgePool], changes: Sequence[EdgeChange]) -> PoolStatistics:
    candidates = [op for pool in pools for op in pool.candidates]
    return PoolStatistics(
        num_candidates=len(candidates) / len(pools),
        types=type_shares(candidates),
        kernels=kernel_shares(candidates),
        similarity=mean(pool_similarity(pool.candidates) for pool in pools),
        parent_probability=parent_probability(changes),
        num_discovered=len({op for pool in pools for op in pool.ever_held}),
    )


def mean_statistics(samples: Sequence[PoolStatistics]) -> PoolStatistics:
    """The mean of several statistics; one without some value does not count for it."""
    with_kernels = [sample.kernels for sample in samples if sample.kernels]
    sizes = sorted({size for kernels in with_kernels for size in kernels})
    names = [name for name in CATEGORIES if any(name in sample.types for sample in samples)]
    return PoolStatistics(
        num_candidates=fmean(sample.num_candidates for sample in samples),
        types={name: fmean(sample.types.get(name, 0.0) for sample in samples) for name in names},
        kernels={size: fmean(kernels.get(size, 0.0) for kernels in with_kernels) for size in sizes},
        similarity=mean(sample.similarity for sample in samples),
        parent_probability=mean(sample.parent_probability for sample in samples),
        num_discovered=fmean(sample.num_discovered for sample in samples),
    )


def average_statistics(pools: Pools, change: Change | None = None) -> PoolStatistics:
    """The mean over all kinds of cell. `change` is the one that led to the pools, if any."""
    return mean_statistics(
        [
            cell_statistics(pools.cell(role), change.cell(role) if change else None)
            for role in pools.roles
        ]
    )


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of those that are not `None`; `None` without any."""
    numbers = [value for value in values if value is not None]
    return fmean(numbers) if numbers else None

"""The pools of a whole cell, one for each edge, and of both cells together."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, TypeAdapter

from prnas.io.reading import validated
from prnas.space.change import CellChange, Change
from prnas.space.checks import STRICT, checked_int
from prnas.space.edge_pool import EdgePool
from prnas.space.genotype import MAX_NODES, NUM_INPUTS, Role
from prnas.space.operations import Operation
from prnas.space.scores import Scores, softmax
from prnas.space.setting import Limits
from prnas.space.worth import EdgeWorth

CellWeights = Sequence[Sequence[float]]  # for each edge, an architecture weight a candidate


def edge_positions(num_nodes: int) -> list[tuple[int, int]]:
    """(state of the node, input) of every edge, in the order of a cell's pools."""
    checked_int("number of nodes", num_nodes, most=MAX_NODES)
    states = range(NUM_INPUTS, NUM_INPUTS + num_nodes)
    return [(state, source) for state in states for source in range(state)]


@dataclass(frozen=True, slots=True)
class CellPools:
    """A pool for each edge of a cell: 14 for four nodes."""

    num_nodes: int
    edges: Annotated[tuple[EdgePool, ...], Field(strict=False)]

    def __post_init__(self) -> None:
        expected = len(edge_positions(self.num_nodes))
        if len(self.edges) != expected:
            raise ValueError(
                f"{self.num_nodes} nodes have {expected} edges, got {len(self.edges)} pools"
            )

    @classmethod
    def initial(cls, num_nodes: int, operations: Sequence[Operation]) -> "CellPools":
        pool = EdgePool.initial(operations)
        return cls(num_nodes, (pool,) * len(edge_positions(num_nodes)))

    @property
    def positions(self) -> list[tuple[int, int]]:
        return edge_positions(self.num_nodes)

    def apply(self, change: CellChange) -> "CellPools":
        pairs = zip(self.edges, change.edges, strict=True)
        return CellPools(self.num_nodes, tuple(pool.apply(edge) for pool, edge in pairs))

    def evolve(
        self,
        weights: CellWeights,
        keep: int,
        number: int,
        limits: Limits,
        generator: Random,
        scores: Scores = softmax,
        worths: Sequence[EdgeWorth] | None = None,
    ) -> tuple["CellPools", CellChange]:
        """Prune and replace on every edge: the end of a cycle."""
        if len(weights) != len(self.edges):
            raise ValueError(
                f"{len(self.edges)} edges need architecture weights, got them for {len(weights)}"
            )
        decided = [
            pool.evolve(alphas, keep, number, limits, generator, scores, worth)
            for pool, alphas, worth in zip(
                self.edges, weights, worths or [None] * len(self.edges), strict=True
            )
        ]
        pools = CellPools(self.num_nodes, tuple(pool for pool, _ in decided))
        return pools, CellChange(tuple(change for _, change in decided))


@dataclass(frozen=True, slots=True)
class Pools:
    """The pools of both cells: the whole state of a search space under way."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT  # also of the values within
    normal: CellPools
    reduction: CellPools

    @classmethod
    def initial(cls, num_nodes: int, operations: Sequence[Operation]) -> "Pools":
        pools = CellPools.initial(num_nodes, operations)
        return cls(pools, pools)

    def cell(self, role: Role) -> CellPools:
        return self.normal if role == "normal" else self.reduction

    def apply(self, change: Change) -> "Pools":
        return Pools(self.normal.apply(change.normal), self.reduction.apply(change.reduction))

    def to_json(self) -> dict[str, Any]:
        return _ADAPTER.dump_python(self, mode="json")

    @classmethod
    def from_json(cls, data: Any) -> "Pools":
        return validated(_ADAPTER, data, "pools")


_ADAPTER = TypeAdapter(Pools)

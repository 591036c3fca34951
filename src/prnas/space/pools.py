"""The pools of a whole cell, one for each edge, and of all kinds of cell together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, TypeAdapter

from prnas.io.reading import validated
from prnas.space.change import CellChange, Change
from prnas.space.checks import STRICT, checked_int
from prnas.space.edge_pool import EdgePool
from prnas.space.operations import Operation
from prnas.space.scores import Scores, softmax
from prnas.space.setting import Limits
from prnas.space.shape import (
    DARTS,
    MAX_NODES,
    CellShape,
    Role,
    ShapeField,
    by_role,
    check_reduction,
)
from prnas.space.worth import EdgeWorth

CellWeights = Sequence[Sequence[float]]  # for each edge, an architecture weight a candidate


def edge_positions(num_nodes: int, shape: CellShape = DARTS) -> list[tuple[int, int]]:
    """(state of the node, input) of every edge, in the order of a cell's pools."""
    checked_int("number of nodes", num_nodes, most=MAX_NODES)
    return [(state, source) for state in shape.nodes(num_nodes) for source in range(state)]


@dataclass(frozen=True, slots=True)
class CellPools:
    """A pool for each edge of a cell: in DARTS' shape 14 for four nodes."""

    num_nodes: int
    edges: Annotated[tuple[EdgePool, ...], Field(strict=False)]
    shape: ShapeField = DARTS

    def __post_init__(self) -> None:
        expected = len(edge_positions(self.num_nodes, self.shape))
        if len(self.edges) != expected:
            raise ValueError(
                f"{self.num_nodes} nodes have {expected} edges, got {len(self.edges)} pools"
            )

    @classmethod
    def initial(
        cls, num_nodes: int, operations: Sequence[Operation], shape: CellShape = DARTS
    ) -> "CellPools":
        pool = EdgePool.initial(operations)
        return cls(num_nodes, (pool,) * len(edge_positions(num_nodes, shape)), shape)

    @property
    def positions(self) -> list[tuple[int, int]]:
        return edge_positions(self.num_nodes, self.shape)

    @property
    def num_states(self) -> int:
        return self.shape.inputs + self.num_nodes

    def apply(self, change: CellChange) -> "CellPools":
        pairs = zip(self.edges, change.edges, strict=True)
        return replace(self, edges=tuple(pool.apply(edge) for pool, edge in pairs))

    def evolve(
        self,
        weights: CellWeights,
        keep: int,
        number: int,
        limits: Limits,
        generator: Random,
        scores: Scores = softmax,
        worths: Sequence[EdgeWorth] | None = None,
        protect_conv: bool = True,
    ) -> tuple["CellPools", CellChange]:
        """Prune and replace on every edge: the end of a cycle."""
        if len(weights) != len(self.edges):
            raise ValueError(
                f"{len(self.edges)} edges need architecture weights, got them for {len(weights)}"
            )
        decided = [
            pool.evolve(alphas, keep, number, limits, generator, scores, worth, protect_conv)
            for pool, alphas, worth in zip(
                self.edges, weights, worths or [None] * len(self.edges), strict=True
            )
        ]
        pools = replace(self, edges=tuple(pool for pool, _ in decided))
        return pools, CellChange(tuple(change for _, change in decided))


@dataclass(frozen=True, slots=True)
class Pools:
    """The pools of all kinds of cell: the whole state of a search space under way."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT  # Holds for the values within, too.
    normal: CellPools
    reduction: CellPools | None = None

    def __post_init__(self) -> None:
        check_reduction(self.shape, self.reduction.shape if self.reduction else None)

    @classmethod
    def of(cls, cells: Mapping[Role, CellPools]) -> "Pools":
        """The pools of these cells."""
        return cls(cells["normal"], cells.get("reduction"))

    @classmethod
    def initial(
        cls, num_nodes: int, operations: Sequence[Operation], shape: CellShape = DARTS
    ) -> "Pools":
        pools = CellPools.initial(num_nodes, operations, shape)
        return cls.of(dict.fromkeys(shape.roles, pools))

    @property
    def shape(self) -> CellShape:
        return self.normal.shape

    @property
    def roles(self) -> tuple[Role, ...]:
        return self.shape.roles

    def cell(self, role: Role) -> CellPools:
        return by_role(role, self.normal, self.reduction)

    def apply(self, change: Change) -> "Pools":
        return Pools.of({role: self.cell(role).apply(change.cell(role)) for role in self.roles})

    def to_json(self) -> dict[str, Any]:
        data = _ADAPTER.dump_python(self, mode="json")
        cells: dict[str, dict[str, Any]] = {role: data[role] for role in self.roles}
        if self.shape == DARTS:  # Files of this shape are older than the field.
            for cell in cells.values():
                del cell["shape"]
        return cells

    @classmethod
    def from_json(cls, data: Any) -> "Pools":
        return validated(_ADAPTER, data, "pools")


_ADAPTER = TypeAdapter(Pools)

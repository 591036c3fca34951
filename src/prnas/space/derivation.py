"""The genotype from the pools and architecture weights of the last cycle."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from prnas.space.change import CellChange, Change, EdgeChange, Pruned
from prnas.space.edge_pool import EdgePool, ranking
from prnas.space.genotype import NUM_INPUTS, ROLES, Cell, Edge, Genotype, Role
from prnas.space.operations import Operation, Skip, Zero
from prnas.space.pools import CellPools, CellWeights, Pools
from prnas.space.scores import Scores, checked_scores, softmax


def derive(
    pools: Pools,
    weights: Mapping[Role, CellWeights],
    generator: Random,
    max_skips: Mapping[Role, int] | None = None,
    scores: Scores = softmax,
) -> tuple[Genotype, Change]:
    """Each edge keeps its best operation, each node its two edges where that has the best score.

    `pools` and `weights` are those that the last cycle trained; the change leaves one candidate
    on every edge. With `max_skips`, a cell of more skips gives up the worst ones and is
    derived again, as P-DARTS does, as far as its pools hold anything else.
    """
    normal, reduction = (
        derive_cell(pools.cell(role), weights[role], generator, (max_skips or {}).get(role), scores)
        for role in ROLES
    )
    return Genotype(normal[0], reduction[0]), Change(normal[1], reduction[1])


def derive_cell(
    pools: CellPools,
    weights: CellWeights,
    generator: Random,
    max_skips: int | None = None,
    scores: Scores = softmax,
) -> tuple[Cell, CellChange]:
    """One cell of `derive`."""
    edges: list[_RankedEdge] = [
        _RankedEdge.of(position, pool, alphas, generator, scores)
        for position, pool, alphas in zip(pools.positions, pools.edges, weights, strict=True)
    ]
    chosen = _choose(edges, pools.num_nodes)
    while max_skips is not None:
        skips = [edge for edge in chosen if isinstance(edge.ranked[0][0], Skip)]
        if len(skips) <= max_skips:
            break
        for worst in sorted(skips, key=_RankedEdge.strength):
            fewer = [edge.without_best() if edge is worst else edge for edge in edges]
            if all(edge.ranked for edge in fewer):
                edges = fewer
                break
        else:
            break  # every pool behind the skips holds nothing else
        chosen = _choose(edges, pools.num_nodes)
    states = range(NUM_INPUTS, NUM_INPUTS + pools.num_nodes)
    nodes = [[edge for edge in chosen if edge.state == state] for state in states]
    cell = Cell(
        tuple((first.as_edge(), second.as_edge()) for first, second in nodes), tuple(states)
    )
    return cell, CellChange(tuple(edge.change() for edge in edges))


@dataclass(frozen=True, slots=True)
class _RankedEdge:
    """An edge with the operations that it may keep and their scores, best first."""

    state: int
    input: int
    pool: tuple[tuple[Operation, float], ...]
    ranked: tuple[tuple[Operation, float], ...]
    tie: float

    @classmethod
    def of(
        cls,
        position: tuple[int, int],
        pool: EdgePool,
        alphas: Sequence[float],
        generator: Random,
        scores: Scores,
    ) -> "_RankedEdge":
        values = checked_scores(scores, alphas, len(pool.candidates))
        held = tuple(zip(pool.candidates, values, strict=True))
        ranked = [held[index] for index in ranking(values, alphas, generator)]
        kept = tuple(one for one in ranked if not isinstance(one[0], Zero))
        if not kept:
            raise ValueError(f"edge {position[1]}→{position[0]} holds nothing but 'zero'")
        return cls(*position, held, kept, generator.random())

    def strength(self) -> tuple[float, float]:
        return (self.ranked[0][1], self.tie)

    def without_best(self) -> "_RankedEdge":
        return _RankedEdge(self.state, self.input, self.pool, self.ranked[1:], self.tie)

    def as_edge(self) -> Edge:
        return Edge(self.input, self.ranked[0][0])

    def change(self) -> EdgeChange:
        kept = self.ranked[0][0]
        return EdgeChange(pruned=tuple(Pruned(*one) for one in self.pool if one[0] != kept))


def _choose(edges: list[_RankedEdge], num_nodes: int) -> list[_RankedEdge]:
    """The two strongest edges of every node, each node's in the order of their inputs."""
    chosen: list[_RankedEdge] = []
    for state in range(NUM_INPUTS, NUM_INPUTS + num_nodes):
        leading = [edge for edge in edges if edge.state == state]
        strongest = sorted(leading, key=_RankedEdge.strength, reverse=True)[:2]
        chosen += sorted(strongest, key=lambda edge: edge.input)
    return chosen

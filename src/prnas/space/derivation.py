"""The genotype from the pools and architecture weights, or measured worth, of the last cycle."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from prnas.space.change import CellChange, Change, EdgeChange, Pruned
from prnas.space.edge_pool import ranking
from prnas.space.genotype import Cell, Edge, Genotype
from prnas.space.operations import Operation, Skip, Zero
from prnas.space.pools import CellPools, CellWeights, Pools
from prnas.space.scores import Scores, checked_scores, softmax
from prnas.space.shape import Output, Role
from prnas.space.worth import EdgeWorth


def derive(
    pools: Pools,
    weights: Mapping[Role, CellWeights],
    generator: Random,
    max_skips: Mapping[Role, int] | None = None,
    scores: Scores = softmax,
    output: Output = "concat",
    worths: Mapping[Role, Sequence[EdgeWorth]] | None = None,
) -> tuple[Genotype, Change]:
    """Each edge keeps its best operation, each node its two edges where that has the best score.

    Or, with measured `worths`, where the loss rises most without it.
    Where the shape says that nodes read all states, all edges stay, and 'zero' may be the best.
    `pools` and `weights` are those that the last cycle trained; the change leaves one candidate
    on every edge. `output` is how the supernet's cells made theirs. With `max_skips`, a cell of
    more skips gives up the worst ones and is derived again, as P-DARTS does, as far as its pools
    hold anything else.
    """
    most = max_skips or {}
    derived: dict[Role, tuple[Cell, CellChange]] = {
        role: derive_cell(
            pools.cell(role),
            weights[role],
            generator,
            most.get(role),
            scores,
            output,
            worths[role] if worths else None,
        )
        for role in pools.roles
    }
    return (
        Genotype.of({role: cell for role, (cell, _) in derived.items()}),
        Change.of({role: change for role, (_, change) in derived.items()}),
    )


def derive_cell(
    pools: CellPools,
    weights: CellWeights,
    generator: Random,
    max_skips: int | None = None,
    scores: Scores = softmax,
    output: Output = "concat",
    worths: Sequence[EdgeWorth] | None = None,
) -> tuple[Cell, CellChange]:
    """One cell of `derive`."""
    edges = ranked_edges(pools, weights, generator, scores, worths)
    return made_cell(pools, *strongest(pools, edges, max_skips), output)


def ranked_edges(
    pools: CellPools,
    weights: CellWeights,
    generator: Random,
    scores: Scores = softmax,
    worths: Sequence[EdgeWorth] | None = None,
) -> list["RankedEdge"]:
    """The edges of a cell, each with what it may keep, best first."""
    edges: list[RankedEdge] = []
    measured = worths or [None] * len(pools.edges)
    rows = zip(pools.positions, pools.edges, weights, measured, strict=True)
    for position, pool, alphas, worth in rows:
        values = checked_scores(scores, alphas, len(pool.candidates))
        order, strengths = ranking(values, alphas, generator), values
        if worth is not None:
            order, strengths = list(worth.order), list(worth.strengths)
            values = worth.probabilities(range(len(pool.candidates)))
        scored = tuple(zip(pool.candidates, values, strict=True))
        ranked = [(pool.candidates[index], strengths[index]) for index in order]
        if pools.shape.reads == "two":
            ranked = [(op, strength) for op, strength in ranked if not isinstance(op, Zero)]
        if not ranked:
            raise ValueError(f"edge {position[1]}→{position[0]} holds nothing but 'zero'")
        edges.append(RankedEdge(*position, scored, tuple(ranked), tie=generator.random()))
    return edges


def strongest(
    pools: CellPools, edges: Sequence["RankedEdge"], max_skips: int | None = None
) -> tuple[list["RankedEdge"], "Nodes"]:
    """The edges of a cell, and those that each node keeps: its strongest."""
    edges, shape = list(edges), pools.shape
    states = shape.nodes(pools.num_nodes)
    while True:
        nodes = [_choose(edges, state, shape.num_edges(state)) for state in states]
        skips = [edge for node in nodes for edge in node if isinstance(edge.best, Skip)]
        replaceable = [edge for edge in skips if len(edge.ranked) > 1]
        if max_skips is None or len(skips) <= max_skips or not replaceable:
            return edges, nodes
        worst = min(replaceable, key=RankedEdge.strength)
        edges[edges.index(worst)] = replace(worst, ranked=worst.ranked[1:])


def made_cell(
    pools: CellPools, edges: Sequence["RankedEdge"], nodes: "Nodes", output: Output
) -> tuple[Cell, CellChange]:
    """The cell of these edges, where each keeps its best; and how the pools come to it."""
    chosen = tuple(tuple(edge.as_edge() for edge in node) for node in nodes)
    cell = Cell(chosen, pools.shape.output_states(pools.num_nodes, output), shape=pools.shape)
    return cell, CellChange(tuple(edge.change() for edge in edges))


@dataclass(frozen=True, slots=True)
class RankedEdge:
    """An edge with its scores, and what it may keep, best first, each with its strength."""

    state: int
    input: int
    pool: tuple[tuple[Operation, float], ...]
    ranked: tuple[tuple[Operation, float], ...]
    tie: float

    @property
    def best(self) -> Operation:
        return self.ranked[0][0]

    def strength(self) -> tuple[float, float]:
        return (self.ranked[0][1], self.tie)

    def as_edge(self) -> Edge:
        return Edge(self.input, self.best)

    def change(self) -> EdgeChange:
        return EdgeChange(tuple(Pruned(op, score) for op, score in self.pool if op != self.best))


Nodes = list[list[RankedEdge]]  # for each node of a cell, the edges that it keeps


def _choose(edges: list[RankedEdge], state: int, number: int) -> list[RankedEdge]:
    """The strongest edges of a node, so many, in the order of their inputs."""
    leading = [edge for edge in edges if edge.state == state]
    strongest = sorted(leading, key=RankedEdge.strength, reverse=True)[:number]
    return sorted(strongest, key=lambda edge: edge.input)

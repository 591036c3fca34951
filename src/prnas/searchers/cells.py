"""The cells that a searcher may ask for, and the single edits that lead from one to another."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from prnas.space.genotype import Cell, Edge, Genotype, Node
from prnas.space.morphisms import morphs
from prnas.space.operations import Operation, Zero
from prnas.space.pools import Pools, edge_positions
from prnas.space.setting import Limits
from prnas.space.shape import DARTS, CellShape, Output, Role

EdgeKey = tuple[
    Role, int, int
]  # a cell's role, the state of a node, and the input of an edge to it
Mutation = Literal["edits", "morphisms"]


@dataclass(frozen=True, slots=True)
class Edit:
    """One edge of a cell becomes another: with another operation, or from another input."""

    role: Role
    node: int  # its number in the cell, from 0
    slot: int  # The edge's position among the node's edges.
    edge: Edge

    def apply(self, genotype: Genotype) -> Genotype:
        """The edited genotype; edges of a node stay in the order of their inputs."""
        cells: dict[Role, Cell] = {role: genotype.cell(role) for role in genotype.roles}
        cell = cells[self.role]
        nodes = list(cell.nodes)
        edges = list(nodes[self.node])
        edges[self.slot] = self.edge
        nodes[self.node] = tuple(sorted(edges, key=lambda edge: edge.input))
        cells[self.role] = Cell(tuple(nodes), cell.concat, shape=cell.shape)
        return Genotype.of(cells)


@dataclass(frozen=True, slots=True)
class CellSpace:
    """All cells of a shape whose edges hold what `choices` allow there.

    'zero' is a choice only where all edges stay: elsewhere a genotype cannot hold it. `limits`
    bound the morphisms, if they make mutations.
    """

    num_nodes: int
    choices: Mapping[EdgeKey, tuple[Operation, ...]]
    shape: CellShape = DARTS
    output: Output = "concat"
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        for role in self.shape.roles:
            for state in self.shape.nodes(self.num_nodes):
                if len(self._inputs(role, state)) < self.shape.num_edges(state):
                    raise ValueError(
                        f"state {state} of the {role} cell has too few edges with an operation"
                    )

    @classmethod
    def uniform(
        cls,
        operations: Sequence[Operation],
        num_nodes: int = 4,
        shape: CellShape = DARTS,
        output: Output = "concat",
        limits: Limits | None = None,
    ) -> "CellSpace":
        """The space in which every edge may hold each of the operations."""
        allowed = _allowed(operations, shape)
        keys = _keys(num_nodes, shape)
        return cls(num_nodes, dict.fromkeys(keys, allowed), shape, output, limits or Limits())

    @classmethod
    def of_pools(cls, pools: Pools, output: Output = "concat") -> "CellSpace":
        """The cells that a supernet holds: each edge has the candidates of its pool."""
        shape, num_nodes = pools.shape, pools.normal.num_nodes
        choices: dict[EdgeKey, tuple[Operation, ...]] = {
            (role, *position): _allowed(pool.candidates, shape)
            for role in pools.roles
            for position, pool in zip(
                pools.cell(role).positions, pools.cell(role).edges, strict=True
            )
        }
        return cls(num_nodes, choices, shape, output)

    def draw(self, generator: Random) -> Genotype:
        """Uniformly: each node's different inputs, and an operation for each."""
        return Genotype.of({role: self._draw_cell(role, generator) for role in self.shape.roles})

    def _draw_cell(self, role: Role, generator: Random) -> Cell:
        nodes: list[Node] = []
        for state in self.shape.nodes(self.num_nodes):
            inputs = self._inputs(role, state)
            if self.shape.reads == "two":
                inputs = sorted(generator.sample(inputs, self.shape.num_edges(state)))
            nodes.append(
                tuple(
                    Edge(source, generator.choice(self.choices[role, state, source]))
                    for source in inputs
                )
            )
        return Cell(tuple(nodes), self._concat, shape=self.shape)

    def holds(self, genotype: Genotype) -> bool:
        """Whether a genotype is a cell of this space. What morphisms made of it need not be."""
        if genotype.shape != self.shape:
            return False
        cells: list[tuple[Role, Cell]] = [(role, genotype.cell(role)) for role in genotype.roles]
        return all(
            cell.num_nodes == self.num_nodes and cell.concat == self._concat for _, cell in cells
        ) and all(
            edge.op in self.choices[role, state, edge.input]
            for role, cell in cells
            for state, edge in cell.edges
        )

    def mutated(
        self, genotype: Genotype, generator: Random, mutation: Mutation = "edits"
    ) -> Genotype:
        """A child that differs from `genotype` in exactly one place.

        One of its cells is drawn, then whether an operation or an input changes, then the edge,
        then to what; all equally likely, among those that can. Of `edits`, operations become
        another choice of their edge; of `morphisms`, also what a legal morphism makes of them. A
        genotype that nothing leads away from stays what it is.
        """
        cells: list[list[list[list[Edit]]]] = []
        for role in genotype.roles:
            operations = list(self._operation_edits(genotype, role, mutation))
            inputs = list(self._input_edits(genotype, role))
            kinds = [[edge for edge in kind if edge] for kind in (operations, inputs)]
            if kinds := [kind for kind in kinds if kind]:
                cells.append(kinds)
        if not cells:
            return genotype
        kind = generator.choice(generator.choice(cells))
        return generator.choice(generator.choice(kind)).apply(genotype)

    def edits(self, genotype: Genotype) -> list[Edit]:
        """All single edits: the neighbourhood of a local search."""
        return [
            edit
            for role in genotype.roles
            for edges in (self._operation_edits(genotype, role), self._input_edits(genotype, role))
            for edge in edges
            for edit in edge
        ]

    def _operation_edits(
        self, genotype: Genotype, role: Role, mutation: Mutation = "edits"
    ) -> Iterator[list[Edit]]:
        """For each edge, the other operations that it may have."""
        for node, slot, state, edge in _numbered_edges(genotype.cell(role)):
            others = [op for op in self.choices[role, state, edge.input] if op != edge.op]
            if mutation == "morphisms":
                children = (child for _, child in morphs(edge.op, self.limits))
                others = [*dict.fromkeys([*others, *children])]
            yield [Edit(role, node, slot, Edge(edge.input, op)) for op in others]

    def _input_edits(self, genotype: Genotype, role: Role) -> Iterator[list[Edit]]:
        """For each edge, the other inputs from which its operation may come."""
        if self.shape.reads == "all":
            return
        cell = genotype.cell(role)
        for node, slot, state, edge in _numbered_edges(cell):
            taken = {other.input for other in cell.nodes[node]}
            own = self.choices[role, state, edge.input]
            yield [
                Edit(role, node, slot, Edge(source, edge.op))
                for source in self._inputs(role, state)
                # What a morphism made is in no edge's choices, and may go anywhere.
                if source not in taken
                and (edge.op in self.choices[role, state, source] or edge.op not in own)
            ]

    def _inputs(self, role: Role, state: int) -> list[int]:
        """The inputs from which an edge to a node may come."""
        return [source for source in range(state) if self.choices.get((role, state, source))]

    @property
    def _concat(self) -> tuple[int, ...]:
        return self.shape.output_states(self.num_nodes, self.output)


def _keys(num_nodes: int, shape: CellShape) -> list[EdgeKey]:
    return [
        (role, *position) for role in shape.roles for position in edge_positions(num_nodes, shape)
    ]


def _allowed(operations: Sequence[Operation], shape: CellShape) -> tuple[Operation, ...]:
    return tuple(op for op in operations if shape.reads == "all" or not isinstance(op, Zero))


def _numbered_edges(cell: Cell) -> Iterator[tuple[int, int, int, Edge]]:
    """Every edge, with the number of its node, its index in there, and the node's state."""
    states = cell.shape.nodes(cell.num_nodes)
    for node, (state, edges) in enumerate(zip(states, cell.nodes, strict=True)):
        for slot, edge in enumerate(edges):
            yield node, slot, state, edge

"""Genotypes, the results of searches: a network's cells with an operation on each edge."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, TypeAdapter

from prnas.io.frames import frame_of
from prnas.io.reading import check_header, parse_json, validated
from prnas.space.checks import STRICT, checked_int, checked_tuple
from prnas.space.notebook import in_short, svg_of
from prnas.space.operations import OPERATIONS, Operation, OperationField, Zero, to_json
from prnas.space.shape import (
    DARTS,
    MAX_NODES,
    CellShape,
    ShapeField,
    by_role,
    check_reduction,
    shape_to_data,
)
from prnas.space.shape import ROLES as ROLES
from prnas.space.shape import Role as Role

FORMAT = "prnas-genotype"
VERSION = 1


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """One input of a node: the state it reads, and the operation applied to it.

    The first states are a cell's inputs (in DARTS' shape 0 and 1, the outputs of the two cells
    before it), those that follow its nodes.
    """

    input: int
    op: OperationField

    def __post_init__(self) -> None:
        checked_int("input", self.input, least=0)
        if type(self.op) not in OPERATIONS.values():
            raise ValueError(f"op must be an operation, got {self.op!r:.60}")


Node = tuple[Edge, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Cell:
    """A cell: for each node its edges, and which states make up the output.

    A node has two edges (the first one fewer, if only one state is before it), or one from every
    earlier state, as the shape says. The two inputs of a node differ, as in every searched cell,
    unless `repeated_inputs` says that they need not (NASNet and AmoebaNet apply two operations to
    the same state).
    """

    nodes: Annotated[
        tuple[Annotated[tuple[Edge, ...], Field(strict=False)], ...], Field(strict=False)
    ]
    concat: Annotated[tuple[int, ...], Field(strict=False)]
    repeated_inputs: bool = False
    shape: ShapeField = DARTS

    def __post_init__(self) -> None:
        nodes = checked_tuple("nodes", self.nodes)
        object.__setattr__(self, "nodes", tuple(checked_tuple("a node", node) for node in nodes))
        object.__setattr__(self, "concat", checked_tuple("concat", self.concat))
        if problems := list(self._problems()):
            raise ValueError("; ".join(problems))

    def _problems(self) -> Iterable[str]:
        if type(self.shape) is not CellShape:
            yield f"shape must be a CellShape, got {self.shape!r:.60}"
            return
        if not 1 <= self.num_nodes <= MAX_NODES:
            yield f"a cell has 1 to {MAX_NODES} nodes, got {self.num_nodes}"
            return
        states = self.shape.nodes(self.num_nodes)
        for number, (state, node) in enumerate(zip(states, self.nodes, strict=True)):
            if any(type(edge) is not Edge for edge in node):
                yield f"nodes[{number}] must be edges"
            elif self.shape.reads == "all":
                yield from _problems_of_all(number, state, node)
            else:
                yield from _problems_of_two(number, state, node, self.repeated_inputs)
        if self.shape.reads == "all" and self.repeated_inputs:
            yield "repeated_inputs is for nodes that read two states, not all"
        first, last = states[0], states[-1]
        if not self.concat:
            yield "concat must name at least one state"
        if len(set(self.concat)) != len(self.concat):
            yield f"concat names a state twice: {list(self.concat)}"
        for state in self.concat:
            if type(state) is not int or not first <= state <= last:
                yield f"concat must name nodes, states {first} to {last}, got {state!r:.60}"

    @property
    def num_nodes(self) -> int:
        return len(self.nodes)

    @property
    def edges(self) -> tuple[tuple[int, Edge], ...]:
        """Every edge with the state of the node it leads to."""
        states = self.shape.nodes(self.num_nodes)
        nodes = zip(states, self.nodes, strict=True)
        return tuple((state, edge) for state, node in nodes for edge in node)

    @property
    def operations(self) -> tuple[Operation, ...]:
        return tuple(edge.op for _, edge in self.edges)

    def to_json(self) -> dict[str, Any]:
        nodes = [
            [{"input": edge.input, "op": to_json(edge.op)} for edge in node] for node in self.nodes
        ]
        repeated = {"repeated_inputs": True} if self.repeated_inputs else {}
        shape = {"shape": shape_to_data(self.shape)} if self.shape != DARTS else {}
        return {"nodes": nodes, "concat": list(self.concat), **repeated, **shape}

    def rows(self) -> list[dict[str, Any]]:
        """A row for each edge: its node, counted from 1, the state that it reads, its operation."""
        first = self.shape.inputs
        return [
            {"node": state - first + 1, "input": edge.input, "operation": edge.op.label}
            for state, edge in self.edges
        ]

    def to_pandas(self) -> Any:
        """The edges as a `pandas.DataFrame`."""
        return frame_of(self.rows())

    def __repr__(self) -> str:
        return f"Cell({self.num_nodes} nodes: {in_short(self)})"

    def _repr_svg_(self) -> str:
        return svg_of(self)


def _problems_of_two(number: int, state: int, node: Node, repeated: bool) -> Iterable[str]:
    """The problems of a node that should read two states, or the only one there is."""
    if len(node) != min(state, 2):
        yield f"nodes[{number}] must be " + ("two edges" if state > 1 else "one edge")
        return
    for slot, edge in enumerate(node):
        if edge.input >= state:
            rule = f"must be a state before the node (0 to {state - 1})"
            yield f"nodes[{number}][{slot}].input {rule}, got {edge.input}"
        if isinstance(edge.op, Zero):
            rule = "a genotype has no 'zero' operation: it would be no connection"
            yield f"nodes[{number}][{slot}].op: {rule}"
    if len({edge.input for edge in node}) < len(node) and not repeated:
        yield (
            f"nodes[{number}] reads state {node[0].input} twice; its two inputs must "
            f"differ unless 'repeated_inputs' is true"
        )


def _problems_of_all(number: int, state: int, node: Node) -> Iterable[str]:
    """The problems of a node that should read every state before it."""
    inputs = [edge.input for edge in node]
    if inputs != list(range(state)):
        rule = "must have an edge from every state before it, in their order"
        yield f"nodes[{number}] {rule}: 0 to {state - 1}, got {inputs!s:.60}"


@dataclass(frozen=True, slots=True, repr=False)
class Genotype:
    """The cells that a whole network repeats: a normal one and, unless all are, a reduction."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT  # Holds for the values within, too.
    normal: Cell
    reduction: Cell | None = None

    def __post_init__(self) -> None:
        if type(self.normal) is not Cell:
            raise ValueError(f"normal must be a Cell, got {self.normal!r:.60}")
        if self.reduction is not None and type(self.reduction) is not Cell:
            raise ValueError(f"reduction must be a Cell, got {self.reduction!r:.60}")
        check_reduction(self.shape, self.reduction.shape if self.reduction else None)

    @classmethod
    def of(cls, cells: Mapping[Role, Cell]) -> "Genotype":
        """The genotype of these cells."""
        return cls(cells["normal"], cells.get("reduction"))

    @property
    def shape(self) -> CellShape:
        return self.normal.shape

    @property
    def roles(self) -> tuple[Role, ...]:
        return self.shape.roles

    def cell(self, role: Role) -> Cell:
        return by_role(role, self.normal, self.reduction)

    def rows(self) -> list[dict[str, Any]]:
        """A row for each edge of each cell."""
        return [{"cell": role, **row} for role in self.roles for row in self.cell(role).rows()]

    def to_pandas(self) -> Any:
        """The edges of all cells as a `pandas.DataFrame`."""
        return frame_of(self.rows())

    def __repr__(self) -> str:
        cells = (f"{role}: {in_short(self.cell(role))}" for role in self.roles)
        return f"Genotype({'; '.join(cells)})"

    def _repr_svg_(self) -> str:
        return svg_of(self)

    def to_json(self) -> dict[str, Any]:
        cells = {role: self.cell(role).to_json() for role in self.roles}
        return {"format": FORMAT, "version": VERSION, **cells}

    @classmethod
    def from_json(cls, data: Any) -> "Genotype":
        """The genotype in parsed JSON; a `FormatError` names the path of every problem."""
        return validated(_ADAPTER, check_header(data, FORMAT, VERSION), "genotype")

    def dumps(self) -> str:
        """JSON text, one edge a line, so that two genotypes can be compared by `diff`."""
        fields = [f' "format": "{FORMAT}"', f' "version": {VERSION}']
        for role in self.roles:
            rest = self.cell(role).to_json()
            nodes = [",\n    ".join(map(json.dumps, node)) for node in rest.pop("nodes")]
            lines = ",\n".join(f"   [{node}]" for node in nodes)
            fields.append(f' "{role}": {{"nodes": [\n{lines}\n  ], {json.dumps(rest)[1:-1]}}}')
        return "{\n" + ",\n".join(fields) + "\n}\n"

    @classmethod
    def loads(cls, text: str) -> "Genotype":
        """The genotype in JSON text; a `FormatError` names the path of every problem."""
        return cls.from_json(parse_json(text))


_ADAPTER = TypeAdapter(Genotype)

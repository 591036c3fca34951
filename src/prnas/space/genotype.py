"""What a search finds: a normal and a reduction cell, each node with two inputs."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from prnas.io.reading import check_header, parse_json, validated
from prnas.space.operations import (
    OPERATIONS,
    STRICT,
    Operation,
    OperationField,
    Zero,
    checked_int,
    checked_tuple,
    to_json,
)

FORMAT = "prnas-genotype"
VERSION = 1
NUM_INPUTS = 2  # a cell reads the outputs of the two cells before it
MAX_NODES = 64
Role = Literal["normal", "reduction"]
ROLES: tuple[Role, Role] = ("normal", "reduction")


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """One input of a node: the state it reads, and the operation applied to it.

    States 0 and 1 are the outputs of the two cells before, 2 is the first node, and so on.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    input: int
    op: OperationField

    def __post_init__(self) -> None:
        checked_int("input", self.input, least=0)
        if type(self.op) not in OPERATIONS.values():
            raise ValueError(f"op must be an operation, got {self.op!r:.60}")
        if isinstance(self.op, Zero):
            raise ValueError("a genotype has no 'zero' operation: it would be no connection")


Node = tuple[Edge, Edge]


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: for each node its two edges, and which states make up the output.

    The two inputs of a node differ, as in every searched cell, unless `repeated_inputs` says
    that they need not (NASNet and AmoebaNet apply two operations to the same state).
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    nodes: Annotated[tuple[tuple[Edge, Edge], ...], Field(strict=False)]
    concat: Annotated[tuple[int, ...], Field(strict=False)]
    repeated_inputs: bool = False

    def __post_init__(self) -> None:
        nodes = checked_tuple("nodes", self.nodes)
        object.__setattr__(self, "nodes", tuple(checked_tuple("a node", node) for node in nodes))
        object.__setattr__(self, "concat", checked_tuple("concat", self.concat))
        if problems := list(self._problems()):
            raise ValueError("; ".join(problems))

    def _problems(self) -> Iterable[str]:
        if not 1 <= self.num_nodes <= MAX_NODES:
            yield f"a cell has 1 to {MAX_NODES} nodes, got {self.num_nodes}"
            return
        for number, node in enumerate(self.nodes):
            if [type(edge) for edge in node] != [Edge, Edge]:
                yield f"nodes[{number}] must be two edges"
                continue
            states = NUM_INPUTS + number
            for slot, edge in enumerate(node):
                if edge.input >= states:
                    rule = f"must be a state before the node (0 to {states - 1})"
                    yield f"nodes[{number}][{slot}].input {rule}, got {edge.input}"
            if node[0].input == node[1].input and not self.repeated_inputs:
                yield (
                    f"nodes[{number}] reads state {node[0].input} twice; its two inputs must "
                    f"differ unless 'repeated_inputs' is true"
                )
        last = NUM_INPUTS + self.num_nodes - 1
        if not self.concat:
            yield "concat must name at least one state"
        if len(set(self.concat)) != len(self.concat):
            yield f"concat names a state twice: {list(self.concat)}"
        for state in self.concat:
            if type(state) is not int or not NUM_INPUTS <= state <= last:
                yield f"concat must name nodes, states {NUM_INPUTS} to {last}, got {state!r:.60}"

    @property
    def num_nodes(self) -> int:
        return len(self.nodes)

    @property
    def edges(self) -> tuple[tuple[int, Edge], ...]:
        """Every edge with the state of the node it leads to."""
        return tuple(
            (NUM_INPUTS + number, edge) for number, node in enumerate(self.nodes) for edge in node
        )

    @property
    def operations(self) -> tuple[Operation, ...]:
        return tuple(edge.op for _, edge in self.edges)

    def to_json(self) -> dict[str, Any]:
        nodes = [
            [{"input": edge.input, "op": to_json(edge.op)} for edge in node] for node in self.nodes
        ]
        repeated = {"repeated_inputs": True} if self.repeated_inputs else {}
        return {"nodes": nodes, "concat": list(self.concat), **repeated}


@dataclass(frozen=True, slots=True)
class Genotype:
    """The two cells that a whole network repeats."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    normal: Cell
    reduction: Cell

    def __post_init__(self) -> None:
        for role in ROLES:
            if type(self.cell(role)) is not Cell:
                raise ValueError(f"{role} must be a Cell, got {self.cell(role)!r:.60}")

    def cell(self, role: Role) -> Cell:
        return self.normal if role == "normal" else self.reduction

    def to_json(self) -> dict[str, Any]:
        cells = {role: self.cell(role).to_json() for role in ROLES}
        return {"format": FORMAT, "version": VERSION, **cells}

    @classmethod
    def from_json(cls, data: Any) -> "Genotype":
        """The genotype in parsed JSON; a `FormatError` names the place of every problem."""
        return validated(_ADAPTER, check_header(data, FORMAT, VERSION), "genotype")

    def dumps(self) -> str:
        """JSON text, one edge a line, so that two genotypes can be compared by `diff`."""
        parts = [f' "format": "{FORMAT}"', f' "version": {VERSION}']
        for role in ROLES:
            rest = self.cell(role).to_json()
            nodes = [",\n    ".join(map(json.dumps, node)) for node in rest.pop("nodes")]
            lines = ",\n".join(f"   [{node}]" for node in nodes)
            parts.append(f' "{role}": {{"nodes": [\n{lines}\n  ], {json.dumps(rest)[1:-1]}}}')
        return "{\n" + ",\n".join(parts) + "\n}\n"

    @classmethod
    def loads(cls, text: str) -> "Genotype":
        """The genotype in JSON text; a `FormatError` names the place of every problem."""
        return cls.from_json(parse_json(text))


_ADAPTER = TypeAdapter(Genotype)

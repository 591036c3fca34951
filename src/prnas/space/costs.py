"""Costs of operations in a final network: parameters, multiply-accumulates, latency.

Costs add up over operations: those on an edge are in every cell of a role, at its channels and
image size, and the rest of a network costs the same whatever its operations are.
"""

from dataclasses import dataclass
from typing import Literal

from prnas.space.final_network import FinalNetwork
from prnas.space.genotype import Genotype
from prnas.space.latency import LatencyTable
from prnas.space.layer_size import NetworkSize
from prnas.space.operations import Operation
from prnas.space.shape import Role

CostKind = Literal["params", "macs", "latency"]
KINDS: tuple[CostKind, ...] = ("params", "macs", "latency")
NANOSECONDS = 1_000_000  # in a millisecond


@dataclass(frozen=True, slots=True)
class Cost:
    """Parameters, multiply-accumulates, and nanoseconds, if there is a table of latencies."""

    params: int = 0
    macs: int = 0
    latency: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.params + other.params, self.macs + other.macs, self.latency + other.latency
        )

    def of(self, kind: CostKind) -> int:
        return {"params": self.params, "macs": self.macs, "latency": self.latency}[kind]


class Costs:
    """The costs of a final network's operations, edge by edge, and of what is around them."""

    def __init__(self, network: FinalNetwork, table: LatencyTable | None = None) -> None:
        self.network, self.table = network, table
        size, self._cells = network.around
        self.around = Cost(size.parameters, size.macs, table.around if table else 0)
        self._counted: dict[tuple[Role, bool, Operation], Cost] = {}

    @property
    def kinds(self) -> tuple[CostKind, ...]:
        """The kinds of cost that are known."""
        return KINDS if self.table else KINDS[:2]

    def of(self, role: Role, source: int, op: Operation) -> Cost:
        """The cost of an operation on this state, in all cells of a role.

        A `KeyError` names an operation whose latency was not measured.
        """
        outer = source < self.network.shape.inputs
        cost = self._counted.get((role, outer, op))
        if cost is None:
            cost = self._counted[role, outer, op] = self._count(role, source, op)
        return cost

    def _count(self, role: Role, source: int, op: Operation) -> Cost:
        total, latency = NetworkSize(), 0
        for cell in self._cells:
            if cell.plan.role == role:
                pixels, stride = cell.reads(source, self.network.shape)
                total += op.size(cell.plan.channels, pixels, stride)
                if self.table:
                    latency += self.table.of(op, cell.plan.channels, pixels, stride)
        return Cost(total.parameters, total.macs, latency)

    def total(self, genotype: Genotype) -> Cost:
        """The cost of a genotype's whole network."""
        total = self.around
        for role in genotype.roles:
            for _, edge in genotype.cell(role).edges:
                total += self.of(role, edge.input, edge.op)
        return total


def shown(kind: CostKind, amount: int) -> str:
    """'3.02 M parameters', '512 M MACs', '18.4 ms'."""
    if kind == "latency":
        return f"{amount / NANOSECONDS:.4g} ms"
    unit = "parameters" if kind == "params" else "multiply-accumulates"
    for size, letter in ((1_000_000_000, " G"), (1_000_000, " M"), (1_000, " k")):
        if amount >= size:
            return f"{amount / size:.4g}{letter} {unit}"
    return f"{amount} {unit}"

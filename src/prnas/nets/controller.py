"""The controller of ENAS (Pham et al., 2018): an LSTM that writes cells, choice by choice.

For every edge of every node it chooses an input, by attention over the states before, and an
operation. The normal cell comes first; the reduction cell goes on from where it ended. Here the two
inputs of a node differ, and where nodes read all states there is no choice of inputs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from prnas.searchers.cells import CellSpace
from prnas.space.genotype import Cell, Edge, Genotype, Node
from prnas.space.operations import Convolution, Operation
from prnas.space.shape import Role

INPUT_BOUND = 1.10  # logits are within ± this
OPERATION_BOUND = 1.10 / 2.5
LEARNT_BIAS = 10.0  # The first bias of convolutions; so large, the bound holds it for long.
FIXED_BIAS = 0.25  # Added for convolutions in the normal cell, subtracted for others.
_DEVIATION = 0.1  # weights are drawn from ± this
Choose = Callable[[Tensor], int]  # an index, by log-probabilities


@dataclass(frozen=True, slots=True)
class Written:
    """A cell, by the choices that wrote it, and how likely it was."""

    genotype: Genotype
    actions: tuple[int, ...]
    log_probability: Tensor
    entropy: Tensor  # The entropy of all its choices together.


class Controller(nn.Module):
    """Writes the cells of a space; in double precision, and so small that a CPU is enough."""

    def __init__(self, space: CellSpace, hidden: int, generator: torch.Generator) -> None:
        super().__init__()
        self.space = space
        self.operations: list[Operation] = list(
            dict.fromkeys(op for ops in space.choices.values() for op in ops)
        )
        number = len(self.operations)
        self.start = nn.Parameter(torch.empty(1, hidden))
        self.embedding = nn.Parameter(torch.empty(number, hidden))
        self.cell = nn.LSTMCell(hidden, hidden, bias=False)
        self.anchors = nn.Linear(hidden, hidden, bias=False)
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.attention = nn.Linear(hidden, 1, bias=False)
        self.head = nn.Linear(hidden, number, bias=False)
        self.double()
        with torch.no_grad():
            for weight in self.parameters():
                weight.uniform_(-_DEVIATION, _DEVIATION, generator=generator)
        convolutions = torch.tensor([isinstance(op, Convolution) for op in self.operations])
        self.bias = nn.Parameter(LEARNT_BIAS * convolutions.double())
        self.register_buffer("preference", FIXED_BIAS * (2 * convolutions.double() - 1))

    def written(self, choose: Choose) -> Written:
        """A cell, written as `choose` decides."""
        walk = _Walk(self, choose)
        genotype = walk.genotype()
        return Written(genotype, tuple(walk.actions), sum_of(walk.logs), sum_of(walk.entropies))

    def again(self, actions: Sequence[int]) -> Written:
        """The cell of these choices, with the probabilities that it has now."""
        left = iter(actions)
        return self.written(lambda _: next(left))


def sum_of(values: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(values)).sum() if values else torch.zeros((), dtype=torch.float64)


class _Walk:
    """One way through all choices."""

    def __init__(self, controller: Controller, choose: Choose) -> None:
        self.controller, self.space, self.choose = controller, controller.space, choose
        self.actions: list[int] = []
        self.logs: list[Tensor] = []
        self.entropies: list[Tensor] = []
        hidden = controller.start.shape[1]
        zeros = controller.start.new_zeros(1, hidden)
        self.state = (zeros, zeros)

    def genotype(self) -> Genotype:
        shape = self.space.shape
        return Genotype.of({role: self._cell(role) for role in shape.roles})

    def _cell(self, role: Role) -> Cell:
        shape = self.space.shape
        anchors: list[Tensor] = []
        x = self.controller.start
        for _ in range(shape.inputs):  # what stands for the cell's inputs
            anchors.append(self._step(x))
        nodes: list[Node] = []
        for state in shape.nodes(self.space.num_nodes):
            edges: list[Edge] = []
            for slot in range(shape.num_edges(state)):
                taken = {edge.input for edge in edges}
                source = slot
                if shape.reads == "two":
                    source = self._input(x, anchors, role, state, taken)
                    x = anchors[source]
                op = self._operation(x, role, state, source)
                x = self.controller.embedding[[self.controller.operations.index(op)]]
                edges.append(Edge(source, op))
            nodes.append(tuple(sorted(edges, key=lambda edge: edge.input)))
            anchors.append(self._step(x))
            x = self.controller.start
        concat = shape.output_states(self.space.num_nodes, self.space.output)
        return Cell(tuple(nodes), concat, shape=shape)

    def _step(self, x: Tensor) -> Tensor:
        self.state = self.controller.cell(x, self.state)
        return self.state[0]

    def _input(
        self, x: Tensor, anchors: Sequence[Tensor], role: Role, state: int, taken: set[int]
    ) -> int:
        hidden, own = self._step(x), self.controller
        keys = own.anchors(torch.cat(list(anchors)))
        logits = own.attention(torch.tanh(keys + own.query(hidden))).flatten()
        allowed = [
            source not in taken and bool(self.space.choices.get((role, state, source)))
            for source in range(state)
        ]
        return self._chosen(INPUT_BOUND * torch.tanh(logits), allowed)

    def _operation(self, x: Tensor, role: Role, state: int, source: int) -> Operation:
        own = self.controller
        logits = own.head(self._step(x)).flatten() + own.bias
        logits = OPERATION_BOUND * torch.tanh(logits)
        if role == "normal":
            logits = logits + own.get_buffer("preference")
        choices = self.space.choices[role, state, source]
        return own.operations[self._chosen(logits, [op in choices for op in own.operations])]

    def _chosen(self, logits: Tensor, allowed: Sequence[bool]) -> int:
        """One of what is allowed; a single possibility is no choice."""
        options = [option for option, is_allowed in enumerate(allowed) if is_allowed]
        if len(options) == 1:
            return options[0]
        logs = torch.log_softmax(logits[options], 0)
        index = self.choose(logs.detach())
        self.actions.append(index)
        self.logs.append(logs[index])
        self.entropies.append(-(logs.exp() * logs).sum().detach())
        return options[index]

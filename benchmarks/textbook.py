"""The supernet as textbooks have it, and as peers do: the yardstick for exactness and for speed.

One module for each candidate, each with its own ReLU and BN, and a weighted sum of their outputs.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.textbook_operations import operation, project
from prnas.nets.network import CifarStem
from prnas.nets.supernet import Supernet
from prnas.space.genotype import NUM_INPUTS, ROLES, Role
from prnas.space.network_plan import CellPlan, plan_cells
from prnas.space.network_size import Output
from prnas.space.operations import Pool
from prnas.space.pools import CellPools, Pools


class TextbookCell(nn.Module):
    """`operations[edge][place]` runs on its own and has all it needs."""

    def __init__(self, pools: CellPools, plan: CellPlan, output: Output) -> None:
        super().__init__()
        self.pools, self.plan, self.output = pools, plan, output
        self.preprocess = nn.ModuleList(
            [
                project(plan.c_before_last, plan.channels, plan.after_reduction),
                project(plan.c_last, plan.channels, False),
            ]
        )
        self.operations = nn.ModuleList(
            nn.ModuleList(
                operation(op, plan.channels, 2 if plan.reduces and source < NUM_INPUTS else 1)
                for op in edge.candidates
            )
            for (_, source), edge in zip(pools.positions, pools.edges, strict=True)
        )

    def forward(self, before_last: Tensor, last: Tensor, mixing: Sequence[Tensor]) -> Tensor:
        states = [self.preprocess[0](before_last), self.preprocess[1](last)]
        nodes: dict[int, Tensor | int] = {}
        for (state, source), operations, weights in zip(
            self.pools.positions, self.operations, mixing, strict=True
        ):
            while len(states) < state:
                states.append(torch.as_tensor(nodes[len(states)]))
            x = states[source]
            mixed = sum(
                weight * operation(x)
                for weight, operation in zip(weights, operations, strict=True)  # pyright: ignore[reportArgumentType]
            )
            nodes[state] = nodes.get(state, 0) + mixed
        made = [torch.as_tensor(node) for node in nodes.values()]
        return torch.cat(made, dim=1) if self.output == "concat" else torch.stack(made).mean(0)


class TextbookSupernet(nn.Module):
    """The same network as `prnas.nets.supernet.Supernet`."""

    def __init__(
        self,
        pools: Pools,
        channels: int = 16,
        cells: int = 8,
        classes: int = 10,
        output: Output = "concat",
    ) -> None:
        super().__init__()
        self.stem = CifarStem(3, 3 * channels)
        width: dict[Role, int] = {
            role: pools.cell(role).num_nodes if output == "concat" else 1 for role in ROLES
        }
        plans, c_out = plan_cells(cells, channels, 3 * channels, width)
        self.cells = nn.ModuleList(
            TextbookCell(pools.cell(plan.role), plan, output) for plan in plans
        )
        self.classifier = nn.Linear(c_out, classes)
        self.architecture = nn.ModuleDict(
            {
                role: nn.ParameterList(
                    nn.Parameter(torch.zeros(len(edge.candidates)))
                    for edge in pools.cell(role).edges
                )
                for role in ROLES
            }
        )

    def architecture_parameters(self) -> list[nn.Parameter]:
        return list(self.architecture.parameters())

    def weight_parameters(self) -> list[nn.Parameter]:
        own = {id(weights) for weights in self.architecture_parameters()}
        return [weight for weight in self.parameters() if id(weight) not in own]

    def forward(self, images: Tensor) -> Tensor:
        before_last, last = self.stem(images)
        mixing = {
            role: [F.softmax(weights, dim=0) for weights in self.architecture[role].parameters()]
            for role in ROLES
        }
        for cell in self.cells:
            assert isinstance(cell, TextbookCell)
            before_last, last = last, cell(before_last, last, mixing[cell.plan.role])
        return self.classifier(last.mean(dim=(2, 3)))


def textbook_of(supernet: Supernet, channels: int, cells: int, classes: int) -> TextbookSupernet:
    """A textbook supernet with the same weights and buffers."""
    output = supernet.search_cells[0].output
    twin = TextbookSupernet(supernet.pools, channels, cells, classes, output)
    twin.to(supernet.classifier.weight.dtype)
    own = dict(supernet.state_dict())
    state = {name: own[textbook_name(name, supernet)] for name in twin.state_dict()}
    twin.load_state_dict(state)
    return twin.train(supernet.training)


def textbook_name(name: str, supernet: Supernet) -> str:
    """What the supernet calls a tensor of the textbook's: only the BN of pools differ."""
    parts = name.split(".")
    if parts[0] != "cells" or parts[2] != "operations":
        return name
    cell = supernet.search_cells[int(parts[1])]
    edge, place = int(parts[3]), int(parts[4])
    op = cell.pools.edges[edge].candidates[place]
    if not isinstance(op, Pool):
        return name
    source = cell.pools.positions[edge][1]
    return f"cells.{parts[1]}.pool_bns.{source}-{op.kind}-{op.kernel}.{parts[-1]}"

"""The supernet as a textbook writes it: every edge holds a pool of candidates.

Tensors are called as those of `supernet`, but for the BN after pooling: here every candidate has
its own, there the edges that leave a state share one.
"""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prnas.nets.plain import (
    CifarStem,
    ResidualBlock,
    combine,
    factory,
    named,
    project,
    without_affine,
)
from prnas.space import operations as space
from prnas.space.network_plan import CellPlan, plan_cells
from prnas.space.pools import CellPools, Pools
from prnas.space.shape import Output, Role, width


class SearchCell(nn.Module):
    """Each node adds up an edge from every earlier state; an edge mixes its candidates.

    `operations[edge][candidate]` has a ReLU and a BN of its own; BN has no scale and shift.
    """

    def __init__(self, pools: CellPools, plan: CellPlan, output: Output) -> None:
        super().__init__()
        self.role, self.num_nodes, self.output = plan.role, pools.num_nodes, output
        self.num_inputs = pools.shape.inputs
        c = plan.channels
        projections: list[nn.Module] = []
        if plan.projects:
            first = project(plan.c_before_last, c, halve=plan.after_reduction)
            projections = [first, project(plan.c_last, c, halve=False)]
        self.preprocess = nn.ModuleList(projections[-self.num_inputs :])
        self.operations = nn.ModuleList(
            nn.ModuleList(
                candidate(op, c, 2 if plan.reduces and source < self.num_inputs else 1)
                for op in pool.candidates
            )
            for (_, source), pool in zip(pools.positions, pools.edges, strict=True)
        )
        without_affine(self)

    def forward(self, before_last: Tensor, last: Tensor, mixing: Sequence[Tensor]) -> Tensor:
        states = [before_last, last][-self.num_inputs :]
        if self.preprocess:
            states = [module(x) for module, x in zip(self.preprocess, states, strict=True)]
        edges = zip(self.operations, mixing, strict=True)
        for _ in range(self.num_nodes):
            node = sum(mix(x, *next(edges)) for x in states)
            states.append(cast(Tensor, node))
        return combine(states[self.num_inputs :], self.output)


def candidate(op: space.Operation, c: int, stride: int) -> nn.Module:
    """A candidate of an edge: in a search, a BN follows pooling."""
    module = factory(op)(c, stride)
    return named(pool=module, bn=nn.BatchNorm2d(c)) if isinstance(op, space.Pool) else module


def mix(x: Tensor, candidates: nn.Module, weights: Tensor) -> Tensor:
    """What an edge makes of a state: the weighted sum of its candidates' outputs."""
    pairs = zip(weights, candidates.children(), strict=True)
    return cast(Tensor, sum(weight * operation(x) for weight, operation in pairs))


class Supernet(nn.Module):
    """Cells that mix candidates by the softmax of architecture weights.

    `architecture[role][edge]` has a weight for each candidate; all cells of a role share it.
    """

    def __init__(
        self,
        pools: Pools,
        channels: int = 16,
        cells: int = 8,
        classes: int = 10,
        *,
        output: Output = "concat",
        input_channels: int = 3,
    ) -> None:
        super().__init__()
        shape = self.shape = pools.shape
        self.stem: nn.Module = CifarStem(input_channels, channels)
        if shape.network == "residual":
            conv = nn.Conv2d(input_channels, channels, 3, padding=1, bias=False)
            self.stem = named(conv=conv, bn=nn.BatchNorm2d(channels))
        widths: dict[Role, int] = {
            role: width(output, pools.cell(role).num_nodes) for role in shape.roles
        }
        plans, c_out = plan_cells(cells, channels, 3 * channels, widths, shape=shape)
        self.blocks = nn.ModuleDict(
            {
                str(index): ResidualBlock(plan.channels // 2, plan.channels)
                for index, plan in enumerate(plans)
                if plan.after_block
            }
        )
        self.cells = nn.ModuleList(
            SearchCell(pools.cell(plan.role), plan, output) for plan in plans
        )
        self.bn = nn.BatchNorm2d(c_out) if shape.network == "residual" else nn.Identity()
        self.classifier = nn.Linear(c_out, classes)
        self.architecture = nn.ModuleDict(
            {
                role: nn.ParameterList(
                    torch.zeros(len(pool.candidates)) for pool in pools.cell(role).edges
                )
                for role in shape.roles
            }
        )

    def architecture_parameters(self) -> list[nn.Parameter]:
        return list(self.architecture.parameters())

    def weight_parameters(self) -> list[nn.Parameter]:
        own = set(self.architecture_parameters())
        return [weight for weight in self.parameters() if weight not in own]

    def forward(self, images: Tensor) -> Tensor:
        mixing = {
            role: [weights.softmax(dim=0) for weights in self.architecture[role].parameters()]
            for role in self.shape.roles
        }
        x = self.stem(images)
        before_last, last = x if isinstance(x, tuple) else (x, x)
        for index, cell in enumerate(self.cells):
            if str(index) in self.blocks:
                before_last = last = self.blocks[str(index)](last)
            weights = mixing[cast(SearchCell, cell).role]
            before_last, last = last, cell(before_last, last, weights)
        if self.shape.network == "residual":
            last = F.relu(self.bn(last))
        return self.classifier(last.mean(dim=(2, 3)))

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

    With `partial` K, the first of K parts of an input's channels goes through the candidates, the
    others around them, and all are shuffled (PC-DARTS). With `auxiliary_skips`, an edge also adds
    its input, times `auxiliary` (DARTS-).
    """

    def __init__(
        self,
        pools: CellPools,
        plan: CellPlan,
        output: Output,
        partial: int = 1,
        auxiliary_skips: bool = False,
    ) -> None:
        super().__init__()
        self.partial, self.auxiliary = partial, 0.0
        self.role: Role = plan.role
        self.num_nodes, self.output = pools.num_nodes, output
        self.num_inputs = pools.shape.inputs
        c = plan.channels
        projections: list[nn.Module] = []
        if plan.projects:
            first = project(plan.c_before_last, c, halve=plan.after_reduction)
            projections = [first, project(plan.c_last, c, halve=False)]
        self.preprocess = nn.ModuleList(projections[-self.num_inputs :])
        self.strides = [
            2 if plan.reduces and source < self.num_inputs else 1 for _, source in pools.positions
        ]
        self.operations = nn.ModuleList(
            nn.ModuleList(candidate(op, c // partial, stride) for op in pool.candidates)
            for stride, pool in zip(self.strides, pools.edges, strict=True)
        )
        self.auxiliary_skips = nn.ModuleDict(
            {
                str(edge): factory(space.Skip())(c, stride)
                for edge, stride in enumerate(self.strides)
                if auxiliary_skips and stride == 2
            }
        )
        without_affine(self)

    def forward(
        self,
        before_last: Tensor,
        last: Tensor,
        mixing: Sequence[Tensor],
        edge_weights: Sequence[Tensor] | None = None,
    ) -> Tensor:
        states = [before_last, last][-self.num_inputs :]
        if self.preprocess:
            states = [module(x) for module, x in zip(self.preprocess, states, strict=True)]
        edges = iter(range(len(mixing)))
        for _ in range(self.num_nodes):
            terms: list[Tensor] = []
            for x in states:
                edge = next(edges)
                term = self._edge(edge, x, mixing[edge])
                terms.append(term if edge_weights is None else edge_weights[edge] * term)
            states.append(cast(Tensor, sum(terms)))
        return combine(states[self.num_inputs :], self.output)

    def _edge(self, edge: int, x: Tensor, weights: Tensor) -> Tensor:
        """An edge's output for the state that it reads."""
        if self.partial == 1:
            out = mix(x, self.operations[edge], weights)
        else:
            width = x.shape[1] // self.partial
            first, rest = x[:, :width], x[:, width:]
            if self.strides[edge] == 2:
                rest = F.max_pool2d(rest, 2, ceil_mode=True)
            out = torch.cat([mix(first, self.operations[edge], weights), rest], dim=1)
            out = F.channel_shuffle(out, self.partial)
        if self.auxiliary:
            name = str(edge)
            skip = self.auxiliary_skips[name] if name in self.auxiliary_skips else nn.Identity()
            out = out + self.auxiliary * skip(x)
        return out


def candidate(op: space.Operation, c: int, stride: int) -> nn.Module:
    """A candidate of an edge: in a search, a BN follows pooling."""
    module = factory(op)(c, stride)
    return named(pool=module, bn=nn.BatchNorm2d(c)) if isinstance(op, space.Pool) else module


def mix(x: Tensor, candidates: nn.Module, weights: Tensor) -> Tensor:
    """The weighted sum of the outputs of an edge's candidates."""
    pairs = zip(weights, candidates.children(), strict=True)
    return cast(Tensor, sum(weight * operation(x) for weight, operation in pairs))


class Supernet(nn.Module):
    """Cells that mix candidates by the softmax of architecture weights.

    `architecture[role][edge]` has a weight for each candidate; all cells of a role share it. With
    `edge_weights`, `edge_architecture[role][node]` has one for each edge into a node.
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
        partial: int = 1,
        auxiliary_skips: bool = False,
        edge_weights: bool = False,
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
            SearchCell(pools.cell(plan.role), plan, output, partial, auxiliary_skips)
            for plan in plans
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

        self.edge_architecture = nn.ModuleDict(
            {
                role: nn.ParameterList(
                    torch.zeros(state) for state in shape.nodes(pools.cell(role).num_nodes)
                )
                for role in shape.roles
                if edge_weights
            }
        )

    def architecture_parameters(self) -> list[nn.Parameter]:
        return [*self.architecture.parameters(), *self.edge_architecture.parameters()]

    def edge_weights(self, role: Role) -> list[Tensor] | None:
        """The weight of each edge: of those into a node, the softmax."""
        if role not in self.edge_architecture:
            return None
        nodes = self.edge_architecture[role].parameters()
        return [weight for node in nodes for weight in node.softmax(dim=0)]

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
            role = cast(SearchCell, cell).role
            edges = self.edge_weights(role)
            before_last, last = last, cell(before_last, last, mixing[role], edges)
        if self.shape.network == "residual":
            last = F.relu(self.bn(last))
        return self.classifier(last.mean(dim=(2, 3)))

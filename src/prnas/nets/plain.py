"""The networks of prnas as a textbook writes them: NCHW, ordinary autograd, nothing clever.

Read this first. The rest of `nets` computes the same in less time: tests compare the two, and
benchmarks measure them. Tensors have the same names in both, but for the BN after pooling in a
supernet: here every candidate has its own, there the edges that leave a state share one.

Exported Python files are made of the functions and classes up to `CellNetwork`: these know nothing
but PyTorch, and keep to 88 columns, as most formatters do.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prnas.space import operations as space
from prnas.space.genotype import NUM_INPUTS, ROLES, Genotype, Role
from prnas.space.genotype import Cell as CellGenotype
from prnas.space.network_plan import CellPlan, plan_cells
from prnas.space.network_size import Output
from prnas.space.network_size import Stem as StemName
from prnas.space.pools import CellPools, Pools

# ---------- Operations: modules from a number of channels `c` and a stride ----------


def named(**parts: nn.Module) -> nn.Sequential:
    """The parts one after the other. Their weights are called after them."""
    return nn.Sequential(OrderedDict(parts))


def conv(
    c: int,
    stride: int,
    kernel: int,
    dilation: int = 1,
    expansions: Sequence[int] = (),
) -> nn.Module:
    """A chain of separable convolutions, one more than there are expansions.

    Between them are `expansions` times as many channels.
    """
    chain = nn.Sequential()
    padding = dilation * (kernel - 1) // 2
    for c_in, c_out in pairwise([c, *(times * c for times in expansions), c]):
        separable = named(
            relu=nn.ReLU(),
            depthwise=nn.Conv2d(
                c_in, c_in, kernel, stride, padding, dilation, groups=c_in, bias=False
            ),
            pointwise=nn.Conv2d(c_in, c_out, 1, bias=False),
            bn=nn.BatchNorm2d(c_out),
        )
        chain.append(separable)
        stride = 1  # for all but the first
    return chain


def conv_1x7_7x1(c: int, stride: int) -> nn.Module:
    row = nn.Conv2d(c, c, (1, 7), (1, stride), (0, 3), bias=False)
    column = nn.Conv2d(c, c, (7, 1), (stride, 1), (3, 0), bias=False)
    return named(relu=nn.ReLU(), row=row, column=column, bn=nn.BatchNorm2d(c))


def plain_conv(c: int, stride: int, kernel: int) -> nn.Module:
    """A full convolution, as those of NAS-Bench-201."""
    full = nn.Conv2d(c, c, kernel, stride, kernel // 2, bias=False)
    return named(relu=nn.ReLU(), conv=full, bn=nn.BatchNorm2d(c))


def pool(c: int, stride: int, kind: str, kernel: int) -> nn.Module:
    if kind == "max":
        return nn.MaxPool2d(kernel, stride, padding=kernel // 2)
    return nn.AvgPool2d(kernel, stride, kernel // 2, count_include_pad=False)


class FactorizedReduction(nn.Module):
    """ReLU, two 1 x 1 convolutions of stride 2, the second a pixel further, BN."""

    def __init__(self, c_in: int, c_out: int) -> None:
        super().__init__()
        half = c_out // 2
        self.first = nn.Conv2d(c_in, half, 1, stride=2, bias=False)
        self.second = nn.Conv2d(c_in, c_out - half, 1, stride=2, bias=False)
        self.bn = nn.BatchNorm2d(c_out)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(x)
        # From the second row and column on; zeros make up for them at the end.
        shifted = F.pad(x, (-1, 1, -1, 1))
        return self.bn(torch.cat([self.first(x), self.second(shifted)], dim=1))


def skip(c: int, stride: int) -> nn.Module:
    return nn.Identity() if stride == 1 else FactorizedReduction(c, c)


class Zero(nn.Module):
    """No connection. Only a supernet has it."""

    def __init__(self, c: int, stride: int) -> None:
        super().__init__()
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        return 0.0 * x[:, :, :: self.stride, :: self.stride]


# ----------------- A cell of two operations a node, and a network of cells -----------------


def project(c_in: int, c_out: int, halve: bool) -> nn.Module:
    """Bring the output of an earlier cell to a cell's number of channels, and size."""
    if halve:
        return FactorizedReduction(c_in, c_out)
    pointwise = nn.Conv2d(c_in, c_out, 1, bias=False)
    return named(relu=nn.ReLU(), conv=pointwise, bn=nn.BatchNorm2d(c_out))


def join(states: list[Tensor], mean: bool) -> Tensor:
    """A cell's output: the channels of its nodes one after the other, or their mean."""
    return torch.stack(states).mean(dim=0) if mean else torch.cat(states, dim=1)


class Cell(nn.Module):
    """Each node adds up two operations on earlier states.

    States 0 and 1 are the outputs of the two cells before; the nodes follow. `nodes`
    has the names of each node's `operations`, with the states that they read.
    """

    def __init__(
        self,
        nodes: Mapping[int, Sequence[tuple[str, int]]],
        output: Sequence[int],
        operations: Mapping[str, Callable[[int, int], nn.Module]],
        c_before_last: int,
        c_last: int,
        channels: int,
        reduces: bool,
        after_reduction: bool,
        mean: bool = False,
    ) -> None:
        super().__init__()
        self.output, self.mean = output, mean
        self.c_out = channels if mean else channels * len(output)
        # After a reduction, the older of the two inputs is still twice as large.
        first = project(c_before_last, channels, halve=after_reduction)
        self.preprocess = nn.ModuleList([first, project(c_last, channels, halve=False)])
        self.inputs = [[state for _, state in node] for node in nodes.values()]
        self.operations = nn.ModuleList(
            nn.ModuleList(
                operations[name](channels, 2 if reduces and state < 2 else 1)
                for name, state in node
            )
            for node in nodes.values()
        )

    def forward(self, before_last: Tensor, last: Tensor) -> Tensor:
        states = [self.preprocess[0](before_last), self.preprocess[1](last)]
        for (i, j), node in zip(self.inputs, self.operations, strict=True):
            first, second = node.children()
            states.append(first(states[i]) + second(states[j]))
        return join([states[i] for i in self.output], self.mean)


class Stem(nn.Module):
    """Makes both inputs of the first cell, of `c_out` channels, from images."""

    c_out: int
    halves = False  # from the one to the other


class CifarStem(Stem):
    """A 3 x 3 convolution and BN; the first cell reads its output twice."""

    def __init__(self, c_in: int, channels: int) -> None:
        super().__init__()
        self.c_out = 3 * channels
        self.conv = nn.Conv2d(c_in, self.c_out, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(self.c_out)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        x = self.bn(self.conv(images))
        return x, x


class ImageNetStem(Stem):
    """Convolutions of stride 2; the first cell reads after two and after three."""

    halves = True

    def __init__(self, c_in: int, channels: int) -> None:
        super().__init__()
        self.c_out = channels
        self.quarter = nn.Sequential(
            nn.Conv2d(c_in, channels // 2, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(channels // 2),
            nn.ReLU(),
            nn.Conv2d(channels // 2, channels, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )
        self.eighth = nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        quarter = self.quarter(images)
        return quarter, self.eighth(quarter)


class CellNetwork(nn.Module):
    """Images, n x C x H x W of any size, to logits, n x classes.

    A third and two thirds into it, a reduction cell halves the images and doubles the
    channels; all other cells are normal ones.
    """

    def __init__(
        self,
        stem: Stem,
        normal: Callable[..., Cell],
        reduction: Callable[..., Cell],
        channels: int,
        cells: int,
        classes: int,
    ) -> None:
        super().__init__()
        self.stem = stem
        self.cells = nn.ModuleList()
        before_last = last = stem.c_out
        after_reduction = stem.halves
        for index in range(cells):
            reduces = index in (cells // 3, 2 * cells // 3)
            if reduces:
                channels *= 2
            make = reduction if reduces else normal
            cell = make(before_last, last, channels, reduces, after_reduction)
            self.cells.append(cell)
            before_last, last = last, cell.c_out
            after_reduction = reduces
        self.classifier = nn.Linear(last, classes)

    def forward(self, images: Tensor) -> Tensor:
        before_last, last = self.stem(images)
        for cell in self.cells:
            before_last, last = last, cell(before_last, last)
        return self.classifier(last.mean(dim=(2, 3)))


# ------------- The network of a genotype, with what training adds to it -------------


class Network(CellNetwork):
    """With drop-path and an auxiliary head: in training, it gives (logits, auxiliary logits)."""

    def __init__(
        self,
        genotype: Genotype,
        channels: int = 36,
        cells: int = 20,
        classes: int = 10,
        *,
        stem: StemName = "cifar",
        output: Output = "concat",
        input_channels: int = 3,
    ) -> None:
        make_stem, stride = (CifarStem, 3) if stem == "cifar" else (ImageNetStem, 2)
        operations, mean = operations_of(genotype), output == "mean"
        normal, reduction = (
            partial(Cell, nodes_of(cell), cell.concat, operations, mean=mean)
            for cell in (genotype.normal, genotype.reduction)
        )
        images = make_stem(input_channels, channels)
        super().__init__(images, normal, reduction, channels, cells, classes)
        self.auxiliary_index = 2 * cells // 3
        c_auxiliary = cast(Cell, self.cells[self.auxiliary_index]).c_out
        self.auxiliary = auxiliary_head(c_auxiliary, classes, stride)
        self.drop_path_probability = 0.0
        for cell in self.cells:
            for node in cast(Cell, cell).operations:
                for operation in node.children():
                    if not isinstance(operation, nn.Identity):
                        operation.register_forward_hook(self._drop_path)

    def _drop_path(self, operation: nn.Module, inputs: object, output: Tensor) -> Tensor:
        """Some images of an operation's output become zero, and the others make up for it."""
        if not self.training or self.drop_path_probability == 0:
            return output
        keep = 1 - self.drop_path_probability
        return output / keep * output.new_empty(len(output), 1, 1, 1).bernoulli_(keep)

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, images: Tensor
    ) -> Tensor | tuple[Tensor, Tensor]:
        if not self.training:
            return super().forward(images)
        before_last, last = self.stem(images)
        auxiliary_logits = last
        for index, cell in enumerate(self.cells):
            before_last, last = last, cell(before_last, last)
            if index == self.auxiliary_index:
                auxiliary_logits = self.auxiliary(last)
        return self.classifier(last.mean(dim=(2, 3))), auxiliary_logits


def auxiliary_head(c: int, classes: int, stride: int) -> nn.Module:
    """A second classifier, for features of 8 x 8 (stride 3) or 7 x 7 (stride 2)."""
    return named(
        relu=nn.ReLU(),
        pool=nn.AvgPool2d(5, stride),
        features=nn.Sequential(
            nn.Conv2d(c, 128, 1, bias=False),
            nn.BatchNorm2d(128),
            nn.ReLU(),
            nn.Conv2d(128, 768, 2, bias=False),
            nn.BatchNorm2d(768),
            nn.ReLU(),
        ),
        flatten=nn.Flatten(),
        classifier=nn.Linear(768, classes),
    )


# What makes the module of each operation, from channels, stride, and its parameters by name.
MODULES: dict[type[space.Operation], Callable[..., nn.Module]] = {
    space.Conv: conv,
    space.Pool: pool,
    space.Skip: skip,
    space.Conv1x7x1: conv_1x7_7x1,
    space.PlainConv: plain_conv,
    space.Zero: Zero,
}
assert MODULES.keys() == set(space.OPERATIONS.values()), "every operation has a module"


def factory(op: space.Operation) -> Callable[[int, int], nn.Module]:
    """What makes an operation's module from a number of channels and a stride."""
    make, parameters = MODULES[type(op)], op.parameters()
    return partial(make, **parameters) if parameters else make


def operations_of(genotype: Genotype) -> dict[str, Callable[[int, int], nn.Module]]:
    """What makes a genotype's operations, by name."""
    used = {op for role in ROLES for op in genotype.cell(role).operations}
    return {_name(op): factory(op) for op in sorted(used)}


def nodes_of(cell: CellGenotype) -> dict[int, list[tuple[str, int]]]:
    """A cell's nodes, as `Cell` reads them."""
    return {
        state: [(_name(edge.op), edge.input) for edge in node]
        for state, node in enumerate(cell.nodes, start=NUM_INPUTS)
    }


def _name(op: space.Operation) -> str:
    return op.label.replace("×", "x")


# ------------------- The supernet: every edge holds a pool of candidates -------------------


class SearchCell(nn.Module):
    """Each node adds up an edge from every earlier state; an edge mixes its candidates.

    `operations[edge][candidate]` has a ReLU and a BN of its own; BN has no scale and shift.
    """

    def __init__(self, pools: CellPools, plan: CellPlan, mean: bool) -> None:
        super().__init__()
        self.role, self.num_nodes, self.mean = plan.role, pools.num_nodes, mean
        c = plan.channels
        first = project(plan.c_before_last, c, halve=plan.after_reduction)
        self.preprocess = nn.ModuleList([first, project(plan.c_last, c, halve=False)])
        self.operations = nn.ModuleList(
            nn.ModuleList(
                candidate(op, c, 2 if plan.reduces and source < NUM_INPUTS else 1)
                for op in pool.candidates
            )
            for (_, source), pool in zip(pools.positions, pools.edges, strict=True)
        )
        without_affine(self)

    def forward(self, before_last: Tensor, last: Tensor, mixing: Sequence[Tensor]) -> Tensor:
        states = [self.preprocess[0](before_last), self.preprocess[1](last)]
        edges = zip(self.operations, mixing, strict=True)
        for _ in range(self.num_nodes):
            node = sum(mix(x, *next(edges)) for x in states)
            states.append(cast(Tensor, node))
        return join(states[NUM_INPUTS:], self.mean)


def without_affine(module: nn.Module) -> nn.Module:
    """The module, whose BN no longer has scale and shift."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.affine = False
            part.register_parameter("weight", None)
            part.register_parameter("bias", None)
    return module


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
        mean = output == "mean"
        self.stem = CifarStem(input_channels, channels)
        width: dict[Role, int] = {role: 1 if mean else pools.cell(role).num_nodes for role in ROLES}
        plans, c_out = plan_cells(cells, channels, self.stem.c_out, width)
        self.cells = nn.ModuleList(SearchCell(pools.cell(plan.role), plan, mean) for plan in plans)
        self.classifier = nn.Linear(c_out, classes)
        self.architecture = nn.ModuleDict(
            {
                role: nn.ParameterList(
                    torch.zeros(len(pool.candidates)) for pool in pools.cell(role).edges
                )
                for role in ROLES
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
            for role in ROLES
        }
        before_last, last = self.stem(images)
        for cell in self.cells:
            weights = mixing[cast(SearchCell, cell).role]
            before_last, last = last, cell(before_last, last, weights)
        return self.classifier(last.mean(dim=(2, 3)))

"""The networks of prnas as a textbook writes them: NCHW, ordinary autograd, nothing clever.

Read this first, then `plain_network` and `plain_supernet`. The rest of `nets` computes the same in
less time: tests compare the two, and benchmarks measure them. Tensors have the same names in both.

Exported Python files are made of the functions and classes up to `ResidualNetwork`: these know
nothing but PyTorch, and keep to 88 columns, as most formatters do.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prnas.space import operations as space
from prnas.space.genotype import Cell as CellGenotype
from prnas.space.genotype import Genotype

# ---------- Operations: modules from a number of channels `c` and a stride ----------


def named(**modules: nn.Module) -> nn.Sequential:
    """Modules one after the other. Their weights are named after them."""
    return nn.Sequential(OrderedDict(modules))


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
    """No connection."""

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


# ------------- Cells of other shapes, and the network of NAS-Bench-201 -------------


def combine(states: list[Tensor], output: str) -> Tensor:
    """A cell's output from its nodes: concat, mean, sum or last."""
    if output == "concat":
        return torch.cat(states, dim=1)
    if output == "last":
        return states[-1]
    stack = torch.stack(states)
    return stack.sum(dim=0) if output == "sum" else stack.mean(dim=0)


class OpenCell(nn.Module):
    """Each node adds up operations on earlier states, as many as `nodes` gives it.

    The first states are the outputs of `inputs` cells before; the nodes follow. Without
    `projects`, they are read as they are. `combined` says how `output` is made one.
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
        *,
        inputs: int,
        projects: bool = True,
        combined: str = "concat",
    ) -> None:
        super().__init__()
        self.output, self.combined, self.num_inputs = output, combined, inputs
        self.c_out = channels * len(output) if combined == "concat" else channels
        self.preprocess = nn.ModuleList()
        if projects and inputs == 2:
            first = project(c_before_last, channels, halve=after_reduction)
            self.preprocess.append(first)
        if projects:
            self.preprocess.append(project(c_last, channels, halve=False))
        self.inputs = [[state for _, state in node] for node in nodes.values()]
        self.operations = nn.ModuleList(
            nn.ModuleList(
                operations[name](channels, 2 if reduces and state < inputs else 1)
                for name, state in node
            )
            for node in nodes.values()
        )

    def forward(self, before_last: Tensor, last: Tensor) -> Tensor:
        states = [before_last, last][-self.num_inputs :]
        if self.preprocess:
            pairs = zip(self.preprocess, states, strict=True)
            states = [module(x) for module, x in pairs]
        for inputs, node in zip(self.inputs, self.operations, strict=True):
            pairs = zip(node.children(), inputs, strict=True)
            terms = [operation(states[i]) for operation, i in pairs]
            states.append(torch.stack(terms).sum(dim=0))
        return combine([states[i] for i in self.output], self.combined)


def relu_conv_bn(c_in: int, c_out: int, stride: int) -> nn.Module:
    conv = nn.Conv2d(c_in, c_out, 3, stride, padding=1, bias=False)
    return named(relu=nn.ReLU(), conv=conv, bn=nn.BatchNorm2d(c_out))


class ResidualBlock(nn.Module):
    """Halves the images: two convolutions, and beside them a mean over 2 x 2 pixels."""

    def __init__(self, c_in: int, c_out: int) -> None:
        super().__init__()
        self.first = relu_conv_bn(c_in, c_out, stride=2)
        self.second = relu_conv_bn(c_out, c_out, stride=1)
        self.pool = nn.AvgPool2d(2, ceil_mode=True)
        self.shortcut = nn.Conv2d(c_in, c_out, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.shortcut(self.pool(x)) + self.second(self.first(x))


class ResidualNetwork(nn.Module):
    """Images, n x C x H x W of any size, to logits, n x classes.

    A third and two thirds into it, a residual block halves the images and doubles the
    channels; all cells keep both.
    """

    def __init__(
        self,
        cell: Callable[..., nn.Module],
        channels: int,
        cells: int,
        classes: int,
        input_channels: int = 3,
    ) -> None:
        super().__init__()
        conv = nn.Conv2d(input_channels, channels, 3, padding=1, bias=False)
        self.stem = named(conv=conv, bn=nn.BatchNorm2d(channels))
        self.blocks = nn.ModuleDict()
        self.cells = nn.ModuleList()
        for index in range(cells):
            if index in (cells // 3, 2 * cells // 3):
                # Named after the cell that follows.
                self.blocks[str(index)] = ResidualBlock(channels, 2 * channels)
                channels *= 2
            self.cells.append(cell(channels, channels, channels, False, False))
        self.bn = nn.BatchNorm2d(channels)
        self.classifier = nn.Linear(channels, classes)

    def forward(self, images: Tensor) -> Tensor:
        before_last = last = self.stem(images)
        for index, cell in enumerate(self.cells):
            if str(index) in self.blocks:
                before_last = last = self.blocks[str(index)](last)
            before_last, last = last, cell(before_last, last)
        return self.classifier(F.relu(self.bn(last)).mean(dim=(2, 3)))


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
    """The function that makes an operation's module from a number of channels and a stride."""
    make, parameters = MODULES[type(op)], op.parameters()
    return partial(make, **parameters) if parameters else make


def operations_of(genotype: Genotype) -> dict[str, Callable[[int, int], nn.Module]]:
    """The functions that make the modules of a genotype's operations, by the operations' names."""
    used = {op for role in genotype.roles for op in genotype.cell(role).operations}
    return {_name(op): factory(op) for op in sorted(used)}


def nodes_of(cell: CellGenotype) -> dict[int, list[tuple[str, int]]]:
    """A cell's nodes, as `Cell` reads them."""
    return {
        state: [(_name(edge.op), edge.input) for edge in node]
        for state, node in enumerate(cell.nodes, start=cell.shape.inputs)
    }


def _name(op: space.Operation) -> str:
    return op.label.replace("×", "x")


def without_affine(module: nn.Module) -> nn.Module:
    """The module, whose BN no longer has scale and shift."""
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.affine = False
            layer.register_parameter("weight", None)
            layer.register_parameter("bias", None)
    return module

"""Operations as modules: the plain ones, or faster ones that compute the same.

Those that begin with a ReLU are `ReluFirst`: a caller that has it already, for several of them,
says so by `rectified`.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prnas.nets.kernels.batch_norm import BatchNorm
from prnas.nets.kernels.depthwise_conv import DepthwiseConv
from prnas.nets.kernels.layouts import diagonal_phases, every_second
from prnas.nets.plain import MODULES, factory, without_affine
from prnas.nets.weights import construct
from prnas.space import operations as space
from prnas.space.network_plan import CellPlan
from prnas.space.operations import Conv, Conv1x7x1, Operation, PlainConv, Pool, Skip


class ReluFirst(nn.Module):
    """An operation on the ReLU of its input."""

    def forward(self, x: Tensor, rectified: bool = False) -> Tensor:
        return self.of_rectified(x if rectified else F.relu(x))

    def of_rectified(self, x: Tensor) -> Tensor:
        raise NotImplementedError


class SeparableConv(ReluFirst):
    """ReLU, depthwise k x k (dilated), pointwise 1 x 1, batch normalisation."""

    def __init__(
        self, c_in: int, c_out: int, kernel: int, stride: int, dilation: int, affine: bool
    ) -> None:
        super().__init__()
        self.depthwise = DepthwiseConv(c_in, kernel, stride, dilation)
        self.pointwise = nn.Conv2d(c_in, c_out, 1, bias=False)
        self.bn = BatchNorm(c_out, affine=affine)

    def of_rectified(self, x: Tensor) -> Tensor:
        return self.bn(self.pointwise(self.depthwise(x)))


class ConvChain(nn.Sequential):
    """The separable convolutions of a `Conv`; only the first carries the stride."""

    def __init__(self, spec: Conv, channels: int, stride: int, affine: bool) -> None:
        widths = [channels, *(width * channels for width in spec.expansions), channels]
        super().__init__(
            *(
                SeparableConv(
                    c_in, c_out, spec.kernel, stride if index == 0 else 1, spec.dilation, affine
                )
                for index, (c_in, c_out) in enumerate(pairwise(widths))
            )
        )

    def forward(self, input: Tensor, rectified: bool = False) -> Tensor:
        for link in self:
            input = link(input, rectified)
            rectified = False
        return input


class HalvingConv(nn.Conv2d):
    """A 1 x 1 convolution of stride 2. `halved`: only every second pixel is given, both ways."""

    def __init__(self, c_in: int, c_out: int) -> None:
        super().__init__(c_in, c_out, 1, stride=2, bias=False)

    def forward(self, input: Tensor, halved: bool = False) -> Tensor:
        return F.conv2d(input, self.weight) if halved else super().forward(input)


class FactorizedReduction(ReluFirst):
    """ReLU, two 1 x 1 convolutions of stride 2, the second one pixel further both ways, BN."""

    def __init__(self, c_in: int, c_out: int, affine: bool) -> None:
        super().__init__()
        half = c_out // 2
        self.first = HalvingConv(c_in, half)
        self.second = HalvingConv(c_in, c_out - half)
        self.bn = BatchNorm(c_out, affine=affine)

    def of_rectified(self, x: Tensor) -> Tensor:
        if self.training:
            # The stride first: with few channels, oneDNN's own backward pass of a strided 1 x 1
            # convolution corrupts memory.
            even, odd = diagonal_phases(x)
            halves = [self.first(even, True), self.second(odd, True)]
        else:
            # Padded after the shift, so that both halves have the same size for odd images too.
            halves = [self.first(x), self.second(F.pad(x, (-1, 1, -1, 1)))]
        return self.bn(torch.cat(halves, dim=1))


class ReluConvBN(ReluFirst):
    """ReLU, full convolution, BN. With 1 x 1, it brings a cell's input to its channel count."""

    def __init__(
        self, c_in: int, c_out: int, affine: bool, kernel: int = 1, stride: int = 1
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2, bias=False)
        self.bn = BatchNorm(c_out, affine=affine)

    def of_rectified(self, x: Tensor) -> Tensor:
        if self.training and self.conv.stride == (2, 2):
            # The stride first, for the sake of oneDNN: its backward pass of strided convolutions
            # with few channels corrupts memory, or has instructions that a CPU may not know.
            return self.bn(_conv_of_phases(x, self.conv.weight))
        return self.bn(self.conv(x))


def _conv_of_phases(x: Tensor, weight: Tensor) -> Tensor:
    """A convolution of stride 2, as one of stride 1 on the four phases of the images."""
    kernel = weight.shape[-1]
    if kernel == 1:
        return F.conv2d(every_second(x), weight)
    before, (height, width) = kernel // 2, x.shape[2:]
    # The padding reaches as far as the kernel, itself padded to an even size, reads.
    below, right = (before + size % 2 for size in (height, width))
    phases = F.pixel_unshuffle(F.pad(x, (before, right, before, below)), 2)
    return F.conv2d(phases, F.pixel_unshuffle(F.pad(weight, (0, 1, 0, 1)), 2))


class Pooling(nn.Module):
    """Max- or average-pooling; padded pixels do not count. During search a BN follows."""

    def __init__(self, spec: Pool, channels: int, stride: int, affine: bool) -> None:
        super().__init__()
        self.kind, self.kernel, self.stride = spec.kind, spec.kernel, stride
        self.bn = nn.Identity() if affine else BatchNorm(channels, affine=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.bn(pool(x, self.kind, self.kernel, self.stride))


def pool(x: Tensor, kind: str, kernel: int, stride: int) -> Tensor:
    """Pooling that keeps the size but for the stride."""
    if kind == "max":
        return F.max_pool2d(x, kernel, stride, kernel // 2)
    return F.avg_pool2d(x, kernel, stride, kernel // 2, count_include_pad=False)


class FullConv1x7x1(ReluFirst):
    """ReLU, 1 x 7 (stride along the width), 7 x 1 (stride along the height), BN."""

    def __init__(self, spec: Conv1x7x1, channels: int, stride: int, affine: bool) -> None:
        super().__init__()
        self.row = nn.Conv2d(channels, channels, (1, 7), (1, stride), (0, 3), bias=False)
        self.column = nn.Conv2d(channels, channels, (7, 1), (stride, 1), (3, 0), bias=False)
        self.bn = BatchNorm(channels, affine=affine)

    def of_rectified(self, x: Tensor) -> Tensor:
        return self.bn(self.column(self.row(x)))


def full_conv(spec: PlainConv, channels: int, stride: int, affine: bool) -> nn.Module:
    return ReluConvBN(channels, channels, affine, spec.kernel, stride)


def identity(spec: Skip, channels: int, stride: int, affine: bool) -> nn.Module:
    return nn.Identity() if stride == 1 else FactorizedReduction(channels, channels, affine)


# Faster modules than the plain ones, each made of an operation, as `build` makes them.
FASTER: dict[type[Operation], Callable[[Any, int, int, bool], nn.Module]] = {
    Conv: ConvChain,
    Pool: Pooling,
    Skip: identity,
    Conv1x7x1: FullConv1x7x1,
    PlainConv: full_conv,
}


def build(spec: Operation, channels: int, stride: int, affine: bool) -> nn.Module:
    """The module of an operation on `channels` channels.

    `affine` is true in final networks: then BN is affine, and pooling has none.
    """
    if type(spec) in FASTER:
        return FASTER[type(spec)](spec, channels, stride, affine)
    module = factory(spec)(channels, stride)
    return module if affine else without_affine(module)


def register(
    kind: type[Operation],
    module: Callable[..., nn.Module],
    faster: Callable[[Any, int, int, bool], nn.Module] | None = None,
) -> None:
    """Let searches and networks have an operation that is not part of prnas.

    `module` makes its module as a textbook has it, from the number of channels, the stride, and the
    operation's parameters by name; it is tried with the examples of the class. `faster` makes, from
    what `build` takes, one that computes the same and calls its weights the same.
    """
    space.register(kind, lambda op: _try(op, partial(module, **op.parameters())))
    MODULES[kind] = module
    if faster is not None:
        FASTER[kind] = faster


@torch.no_grad()
def _try(op: Operation, make: Callable[[int, int], nn.Module]) -> None:
    """Raise a `ValueError` if an operation's module is not what cells rely on."""
    images = torch.zeros(2, 8, 6, 4).contiguous(memory_format=torch.channels_last)
    for stride in (1, 2):
        module = construct(partial(make, 8, stride), torch.Generator()).eval()
        shape, expected = tuple(module(images).shape), (2, 8, 6 // stride, 4 // stride)
        size = op.size(8, (6, 4), stride).parameters
        weights = sum(weight.numel() for weight in module.parameters())
        what = f"'{op.label}' at stride {stride}"
        if shape != expected:
            raise ValueError(f"{what} makes {shape} of {tuple(images.shape)}, not {expected}")
        if images._version:
            raise ValueError(f"{what} changes its input, which other operations read too")
        if weights != size:
            raise ValueError(f"{what} has {weights} parameters by its module, {size} by its size")


def projections(plan: CellPlan, inputs: int, affine: bool) -> list[nn.Module]:
    """Modules that bring outputs of `inputs` earlier cells to a cell's size and channels."""
    if not plan.projects:
        return []
    last = ReluConvBN(plan.c_last, plan.channels, affine)
    if inputs == 1:
        return [last]
    kind = FactorizedReduction if plan.after_reduction else ReluConvBN
    return [kind(plan.c_before_last, plan.channels, affine), last]

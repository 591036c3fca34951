"""Operations as textbooks write them: plain modules, nothing shared with `prnas.nets`.

Only their parts are called the same, so that weights can be copied over by name.
"""

from collections import OrderedDict
from itertools import pairwise

import torch
from torch import Tensor, nn

from prnas.space.operations import Conv, Conv1x7x1, Operation, Pool, Skip


def named(**parts: nn.Module) -> nn.Sequential:
    return nn.Sequential(OrderedDict(parts))


def bn(channels: int, affine: bool = False) -> nn.Module:
    return nn.BatchNorm2d(channels, affine=affine)


def separable(
    c_in: int, c_out: int, kernel: int, stride: int, dilation: int, affine: bool
) -> nn.Module:
    padding = dilation * (kernel - 1) // 2
    depthwise = nn.Conv2d(c_in, c_in, kernel, stride, padding, dilation, groups=c_in, bias=False)
    pointwise = nn.Conv2d(c_in, c_out, 1, bias=False)
    return named(relu=nn.ReLU(), depthwise=depthwise, pointwise=pointwise, bn=bn(c_out, affine))


class Reduction(nn.Module):
    """A factorized reduction; odd images get a row and a column of zeros for the second half."""

    def __init__(self, c_in: int, c_out: int, affine: bool) -> None:
        super().__init__()
        self.first = nn.Conv2d(c_in, c_out // 2, 1, 2, bias=False)
        self.second = nn.Conv2d(c_in, c_out - c_out // 2, 1, 2, bias=False)
        self.bn = bn(c_out, affine)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(x)
        larger = nn.functional.pad(x, (0, 1, 0, 1))
        return self.bn(torch.cat([self.first(x), self.second(larger[:, :, 1:, 1:])], dim=1))


class Zeros(nn.Module):
    def __init__(self, stride: int) -> None:
        super().__init__()
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        return x[:, :, :: self.stride, :: self.stride] * 0.0


def project(c_in: int, c_out: int, after_reduction: bool, affine: bool = False) -> nn.Module:
    if after_reduction:
        return Reduction(c_in, c_out, affine)
    conv = nn.Conv2d(c_in, c_out, 1, bias=False)
    return named(relu=nn.ReLU(), conv=conv, bn=bn(c_out, affine))


def operation(spec: Operation, channels: int, stride: int, affine: bool = False) -> nn.Module:
    """With a ReLU and a BN of its own. `affine`: as in final networks, where pools have no BN."""
    match spec:
        case Conv():
            widths = [channels, *(width * channels for width in spec.expansions), channels]
            strides = [stride, *[1] * len(spec.expansions)]
            return nn.Sequential(
                *(
                    separable(c_in, c_out, spec.kernel, step, spec.dilation, affine)
                    for (c_in, c_out), step in zip(pairwise(widths), strides, strict=True)
                )
            )
        case Pool():
            edge = spec.kernel // 2
            after = nn.Identity() if affine else bn(channels)
            if spec.kind == "max":
                return named(pool=nn.MaxPool2d(spec.kernel, stride, edge), bn=after)
            pool = nn.AvgPool2d(spec.kernel, stride, edge, count_include_pad=False)
            return named(pool=pool, bn=after)
        case Skip():
            return nn.Identity() if stride == 1 else Reduction(channels, channels, affine)
        case Conv1x7x1():
            row = nn.Conv2d(channels, channels, (1, 7), (1, stride), (0, 3), bias=False)
            column = nn.Conv2d(channels, channels, (7, 1), (stride, 1), (3, 0), bias=False)
            return named(relu=nn.ReLU(), row=row, column=column, bn=bn(channels, affine))
        case _:
            return Zeros(stride)

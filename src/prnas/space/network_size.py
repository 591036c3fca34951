"""How large a genotype's network is: counted from its plan, exactly, without building it."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, assert_never

from prnas.space.genotype import NUM_INPUTS, ROLES, Cell, Genotype, Role
from prnas.space.network_plan import CellPlan, plan_cells
from prnas.space.operations import Conv, Conv1x7x1, Operation, Pool, Skip, Zero

Stem = Literal["cifar", "imagenet"]
Output = Literal["concat", "mean"]
Pixels = tuple[int, int]


@dataclass(frozen=True, slots=True)
class NetworkSize:
    """Trainable parameters, and multiply-accumulates of convolutions and the linear layer."""

    parameters: int = 0
    macs: int = 0

    def __add__(self, other: "NetworkSize") -> "NetworkSize":
        return NetworkSize(self.parameters + other.parameters, self.macs + other.macs)


def network_size(
    genotype: Genotype,
    channels: int = 36,
    cells: int = 20,
    classes: int = 10,
    *,
    stem: Stem = "cifar",
    output: Output = "concat",
    input_channels: int = 3,
    image_size: int | Pixels = 32,
) -> NetworkSize:
    """The size of the network, without its auxiliary head, and its cost for one image.

    `image_size` is the side of a square, or height and width.
    """
    pixels = (image_size, image_size) if isinstance(image_size, int) else image_size
    stem_channels = 3 * channels if stem == "cifar" else channels
    width: dict[Role, int] = {
        role: len(genotype.cell(role).concat) if output == "concat" else 1 for role in ROLES
    }
    plans, c_out = plan_cells(cells, channels, stem_channels, width, stem == "imagenet")
    total, pixels = _stem(stem, input_channels, stem_channels, pixels)
    for plan in plans:
        total += _cell(genotype.cell(plan.role), plan, pixels)
        pixels = _halved(pixels) if plan.reduces else pixels
    return total + NetworkSize(c_out * classes + classes, c_out * classes)


def _halved(pixels: Pixels) -> Pixels:
    return -(-pixels[0] // 2), -(-pixels[1] // 2)


def _conv(weights: int, pixels: Pixels) -> NetworkSize:
    return NetworkSize(weights, weights * pixels[0] * pixels[1])


def _bn(channels: int) -> NetworkSize:
    return NetworkSize(2 * channels)


def _pointwise_bn(c_in: int, c_out: int, pixels: Pixels) -> NetworkSize:
    """What projects a cell's input; a factorized reduction has as many weights."""
    return _conv(c_in * c_out, pixels) + _bn(c_out)


def _stem(stem: Stem, c_in: int, c_out: int, pixels: Pixels) -> tuple[NetworkSize, Pixels]:
    if stem == "cifar":
        return _conv(9 * c_in * c_out, pixels) + _bn(c_out), pixels
    total, half = NetworkSize(), c_out // 2
    for before, after in ((c_in, half), (half, c_out), (c_out, c_out)):
        pixels = _halved(pixels)
        total += _conv(9 * before * after, pixels) + _bn(after)
    return total, pixels


def _cell(cell: Cell, plan: CellPlan, pixels: Pixels) -> NetworkSize:
    total = _pointwise_bn(plan.c_before_last, plan.channels, pixels)
    total += _pointwise_bn(plan.c_last, plan.channels, pixels)
    for _, edge in cell.edges:
        if plan.reduces and edge.input < NUM_INPUTS:
            total += _operation(edge.op, plan.channels, pixels, stride=2)
        else:
            inner = _halved(pixels) if plan.reduces else pixels
            total += _operation(edge.op, plan.channels, inner, stride=1)
    return total


def _operation(op: Operation, channels: int, pixels: Pixels, stride: int) -> NetworkSize:
    """The size of an operation that reads `pixels`."""
    out = _halved(pixels) if stride == 2 else pixels
    match op:
        case Conv():
            widths = [channels, *(width * channels for width in op.expansions), channels]
            total = NetworkSize()
            for c_in, c_out in pairwise(widths):
                total += _conv(op.kernel**2 * c_in, out) + _pointwise_bn(c_in, c_out, out)
            return total
        case Conv1x7x1():
            row = _conv(7 * channels**2, (pixels[0], out[1]))
            return row + _conv(7 * channels**2, out) + _bn(channels)
        case Skip():
            return NetworkSize() if stride == 1 else _pointwise_bn(channels, channels, out)
        case Pool() | Zero():
            return NetworkSize()
        case _:
            assert_never(op)

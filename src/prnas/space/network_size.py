"""The exact size of a genotype's network, counted from its plan without building it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prnas.space.genotype import Genotype
from prnas.space.layer_size import (
    NetworkSize,
    Pixels,
    bn_size,
    conv_size,
    halved,
    pointwise_bn_size,
)
from prnas.space.network_plan import (
    CellPlan,
    Stem,
    num_stem_channels,
    output_widths,
    plan_cells,
)
from prnas.space.operations import Operation
from prnas.space.pools import Pools
from prnas.space.shape import CellShape, Output, Role, width


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
    shape = genotype.shape
    stem_channels = num_stem_channels(channels, stem, shape)
    widths = output_widths(genotype, output)
    plans, c_out = plan_cells(cells, channels, stem_channels, widths, stem == "imagenet", shape)
    total, pixels = _stem(stem, input_channels, stem_channels, pixels)
    for cell in sized_cells(plans, pixels):
        edges = [(edge.input, edge.op) for _, edge in genotype.cell(cell.plan.role).edges]
        total += _cell(edges, cell, shape)
    return total + _end(shape, c_out, classes)


def size_around(
    plans: Sequence[CellPlan],
    c_out: int,
    classes: int,
    shape: CellShape,
    stem: Stem,
    input_channels: int,
    stem_channels: int,
    pixels: Pixels,
) -> tuple[NetworkSize, list["SizedCell"]]:
    """The size of a network without its cells' operations, and the cells with their pixels."""
    total, pixels = _stem(stem, input_channels, stem_channels, pixels)
    sized = sized_cells(plans, pixels)
    for cell in sized:
        total += _cell((), cell, shape)
    return total + _end(shape, c_out, classes), sized


def supernet_macs(
    pools: Pools,
    channels: int,
    cells: int,
    classes: int,
    *,
    output: Output,
    input_channels: int,
    pixels: Pixels,
    partial_channels: int = 1,
) -> int:
    """Multiply-accumulates of a supernet, all candidates included, for one image.

    With `partial_channels` K, these compute one of K parts of the channels.
    """
    shape = pools.shape
    widths: dict[Role, int] = {
        role: width(output, pools.cell(role).num_nodes) for role in pools.roles
    }
    stem_channels = num_stem_channels(channels, shape=shape)
    plans, c_out = plan_cells(cells, channels, stem_channels, widths, shape=shape)
    total, pixels = _stem("cifar", input_channels, stem_channels, pixels)
    for cell in sized_cells(plans, pixels):
        pool = pools.cell(cell.plan.role)
        edges = [
            (source, op)
            for (_, source), edge in zip(pool.positions, pool.edges, strict=True)
            for op in edge.candidates
        ]
        total += _cell(edges, cell, shape, partial_channels)
    return (total + _end(shape, c_out, classes)).macs


def _stem(stem: Stem, c_in: int, c_out: int, pixels: Pixels) -> tuple[NetworkSize, Pixels]:
    if stem == "cifar":
        return conv_size(9 * c_in * c_out, pixels) + bn_size(c_out), pixels
    total, half = NetworkSize(), c_out // 2
    for before, after in ((c_in, half), (half, c_out), (c_out, c_out)):
        pixels = halved(pixels)
        total += conv_size(9 * before * after, pixels) + bn_size(after)
    return total, pixels


@dataclass(frozen=True, slots=True)
class SizedCell:
    """A cell of a network with the pixels of its inputs, and those of its nodes."""

    plan: CellPlan
    pixels: Pixels
    inner: Pixels

    def reads(self, source: int, shape: CellShape) -> tuple[Pixels, int]:
        """The pixels that an operation on this state reads, and its stride."""
        if self.plan.reduces and source < shape.inputs:
            return self.pixels, 2
        return self.inner, 1


def sized_cells(plans: Iterable[CellPlan], pixels: Pixels) -> list[SizedCell]:
    """The cells with their pixels, after a stem that makes `pixels`."""
    sized: list[SizedCell] = []
    for plan in plans:
        if plan.after_block:
            pixels = halved(pixels)
        inner = halved(pixels) if plan.reduces else pixels
        sized.append(SizedCell(plan, pixels, inner))
        pixels = inner
    return sized


def _cell(
    edges: Iterable[tuple[int, Operation]], cell: SizedCell, shape: CellShape, partial: int = 1
) -> NetworkSize:
    """A cell of these operations, each with the state that it reads.

    Of `partial` parts of the channels they compute one.
    """
    plan = cell.plan
    total, c = NetworkSize(), plan.channels
    if plan.after_block:
        total += _residual_block(c // 2, c, cell.pixels)
    if plan.projects:
        for c_in in (plan.c_before_last, plan.c_last)[-shape.inputs :]:
            total += pointwise_bn_size(c_in, c, cell.pixels)
    for source, op in edges:
        pixels, stride = cell.reads(source, shape)
        total += op.size(c // partial, pixels, stride=stride)
    return total


def _residual_block(c_in: int, c_out: int, pixels: Pixels) -> NetworkSize:
    """Two 3 x 3 convolutions with BN, and a 1 x 1 convolution beside them, which make `pixels`."""
    main = conv_size(9 * c_in * c_out, pixels) + conv_size(9 * c_out * c_out, pixels)
    return main + conv_size(c_in * c_out, pixels) + bn_size(c_out) + bn_size(c_out)


def _end(shape: CellShape, c: int, classes: int) -> NetworkSize:
    """The classifier, and what a residual network has before it."""
    classifier = NetworkSize(c * classes + classes, c * classes)
    return classifier + bn_size(c) if shape.network == "residual" else classifier

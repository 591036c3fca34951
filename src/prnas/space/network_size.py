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
    for place in cell_places(plans, pixels):
        edges = [(edge.input, edge.op) for _, edge in genotype.cell(place.plan.role).edges]
        total += _cell(edges, place, shape)
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
) -> tuple[NetworkSize, list["CellPlace"]]:
    """The size of a network without the operations of its cells, and where these are."""
    total, pixels = _stem(stem, input_channels, stem_channels, pixels)
    places = cell_places(plans, pixels)
    for place in places:
        total += _cell((), place, shape)
    return total + _end(shape, c_out, classes), places


def supernet_macs(
    pools: Pools,
    channels: int,
    cells: int,
    classes: int,
    *,
    output: Output,
    input_channels: int,
    pixels: Pixels,
) -> int:
    """Multiply-accumulates of a supernet, all candidates included, for one image."""
    shape = pools.shape
    widths: dict[Role, int] = {
        role: width(output, pools.cell(role).num_nodes) for role in pools.roles
    }
    stem_channels = num_stem_channels(channels, shape=shape)
    plans, c_out = plan_cells(cells, channels, stem_channels, widths, shape=shape)
    total, pixels = _stem("cifar", input_channels, stem_channels, pixels)
    for place in cell_places(plans, pixels):
        cell = pools.cell(place.plan.role)
        edges = [
            (source, op)
            for (_, source), edge in zip(cell.positions, cell.edges, strict=True)
            for op in edge.candidates
        ]
        total += _cell(edges, place, shape)
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
class CellPlace:
    """A cell of a network with the pixels of its inputs, and those of its nodes."""

    plan: CellPlan
    pixels: Pixels
    inner: Pixels

    def reads(self, source: int, shape: CellShape) -> tuple[Pixels, int]:
        """The pixels that an operation on this state reads, and its stride."""
        if self.plan.reduces and source < shape.inputs:
            return self.pixels, 2
        return self.inner, 1


def cell_places(plans: Iterable[CellPlan], pixels: Pixels) -> list[CellPlace]:
    """Where the cells are, after a stem that makes `pixels`."""
    places: list[CellPlace] = []
    for plan in plans:
        if plan.after_block:
            pixels = halved(pixels)
        inner = halved(pixels) if plan.reduces else pixels
        places.append(CellPlace(plan, pixels, inner))
        pixels = inner
    return places


def _cell(
    edges: Iterable[tuple[int, Operation]], place: CellPlace, shape: CellShape
) -> NetworkSize:
    """A cell of these operations, each with the state that it reads."""
    plan = place.plan
    total, c = NetworkSize(), plan.channels
    if plan.after_block:
        total += _residual_block(c // 2, c, place.pixels)
    if plan.projects:
        for c_in in (plan.c_before_last, plan.c_last)[-shape.inputs :]:
            total += pointwise_bn_size(c_in, c, place.pixels)
    for source, op in edges:
        pixels, stride = place.reads(source, shape)
        total += op.size(c, pixels, stride=stride)
    return total


def _residual_block(c_in: int, c_out: int, pixels: Pixels) -> NetworkSize:
    """Two 3 x 3 convolutions with BN, and a 1 x 1 convolution beside them, which make `pixels`."""
    main = conv_size(9 * c_in * c_out, pixels) + conv_size(9 * c_out * c_out, pixels)
    return main + conv_size(c_in * c_out, pixels) + bn_size(c_out) + bn_size(c_out)


def _end(shape: CellShape, c: int, classes: int) -> NetworkSize:
    """The classifier, and what a residual network has before it."""
    classifier = NetworkSize(c * classes + classes, c * classes)
    return classifier + bn_size(c) if shape.network == "residual" else classifier

"""How large a genotype's network is: counted from its plan, exactly, without building it."""

from collections.abc import Iterable
from typing import Literal

from prnas.space.genotype import NUM_INPUTS, ROLES, Genotype, Role
from prnas.space.layer_size import (
    NetworkSize,
    Pixels,
    bn_size,
    conv_size,
    halved,
    pointwise_bn_size,
)
from prnas.space.network_plan import CellPlan, plan_cells
from prnas.space.operations import Operation
from prnas.space.pools import Pools

Stem = Literal["cifar", "imagenet"]
Output = Literal["concat", "mean"]


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
        edges = [(edge.input, edge.op) for _, edge in genotype.cell(plan.role).edges]
        total += _cell(edges, plan, pixels)
        pixels = halved(pixels) if plan.reduces else pixels
    return total + NetworkSize(c_out * classes + classes, c_out * classes)


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
    width: dict[Role, int] = {
        role: pools.cell(role).num_nodes if output == "concat" else 1 for role in ROLES
    }
    plans, c_out = plan_cells(cells, channels, 3 * channels, width)
    total, pixels = _stem("cifar", input_channels, 3 * channels, pixels)
    for plan in plans:
        cell = pools.cell(plan.role)
        edges = [
            (source, op)
            for (_, source), edge in zip(cell.positions, cell.edges, strict=True)
            for op in edge.candidates
        ]
        total += _cell(edges, plan, pixels)
        pixels = halved(pixels) if plan.reduces else pixels
    return total.macs + c_out * classes


def _stem(stem: Stem, c_in: int, c_out: int, pixels: Pixels) -> tuple[NetworkSize, Pixels]:
    if stem == "cifar":
        return conv_size(9 * c_in * c_out, pixels) + bn_size(c_out), pixels
    total, half = NetworkSize(), c_out // 2
    for before, after in ((c_in, half), (half, c_out), (c_out, c_out)):
        pixels = halved(pixels)
        total += conv_size(9 * before * after, pixels) + bn_size(after)
    return total, pixels


def _cell(edges: Iterable[tuple[int, Operation]], plan: CellPlan, pixels: Pixels) -> NetworkSize:
    """A cell of these operations, each with the state that it reads."""
    total = pointwise_bn_size(plan.c_before_last, plan.channels, pixels)
    total += pointwise_bn_size(plan.c_last, plan.channels, pixels)
    for source, op in edges:
        if plan.reduces and source < NUM_INPUTS:
            total += op.size(plan.channels, pixels, stride=2)
        else:
            inner = halved(pixels) if plan.reduces else pixels
            total += op.size(plan.channels, inner, stride=1)
    return total

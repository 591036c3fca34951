"""The plan of a network: where reductions stand, and how wide its cells are."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from prnas.space.genotype import Genotype
from prnas.space.shape import DARTS, CellShape, Output, Role, width

Stem = Literal["cifar", "imagenet"]


@dataclass(frozen=True, slots=True)
class CellPlan:
    """One cell of a network: its role, channels of its inputs, and its own.

    `after_block` says that a residual block stands before it, which halves the images and doubles
    the channels, and whose output all its inputs are. With `projects`, 1x1 convolutions bring its
    inputs to its channels.
    """

    role: Role
    c_before_last: int
    c_last: int
    channels: int
    after_reduction: bool
    reduces: bool
    after_block: bool = False
    projects: bool = True


def reduction_positions(cells: int) -> tuple[int, int]:
    """The indices of the two cells that reduce, or that follow a residual block."""
    return cells // 3, 2 * cells // 3


def num_stem_channels(channels: int, stem: Stem = "cifar", shape: CellShape = DARTS) -> int:
    """The channels that a stem makes for cells of `channels`."""
    return 3 * channels if stem == "cifar" and shape.network == "darts" else channels


def output_widths(genotype: Genotype, output: Output) -> dict[Role, int]:
    """The factors by which the outputs of a genotype's cells are wider than the cells' channels."""
    return {role: width(output, len(genotype.cell(role).concat)) for role in genotype.roles}


def genotype_problems(genotype: Genotype, cells: int, output: Output, stem: Stem) -> list[str]:
    """The problems of such a network of a genotype's cells, as messages."""
    widest = max(output_widths(genotype, output).values())
    return check_network(genotype.shape, cells, widest, stem)


def check_network(shape: CellShape, cells: int, widest: int = 1, stem: Stem = "cifar") -> list[str]:
    """The problems of a network of so many cells of this shape, with outputs of this width."""
    if shape.network == "darts":
        return []
    problems: list[str] = []
    if cells % 3:
        problems.append(
            f"cells must be a multiple of 3, as many before as between and after the two residual "
            f"blocks, got {cells}"
        )
    if widest > 1:
        problems.append(
            "output must be mean, sum or last in a residual network: its cells keep their channels"
        )
    if stem != "cifar":
        problems.append(f"stem must be cifar in a residual network, got {stem}")
    return problems


def plan_cells(
    cells: int,
    channels: int,
    stem_channels: int,
    widths: Mapping[Role, int],
    after_reduction: bool = False,
    shape: CellShape = DARTS,
) -> tuple[list[CellPlan], int]:
    """All cells of a network, and the channels of its last one.

    `widths` say how many times its channels a cell's output has. `after_reduction` says that the
    stem halves between the first cell's two inputs.
    """
    if shape.network == "residual":
        return _residual_cells(cells, channels), 4 * channels
    indices = reduction_positions(cells)
    before_last, last = stem_channels, stem_channels
    plans: list[CellPlan] = []
    for index in range(cells):
        reduces = index in indices
        role = shape.roles[-1] if reduces else "normal"
        if reduces:
            channels *= 2
        plans.append(CellPlan(role, before_last, last, channels, after_reduction, reduces))
        before_last, last = last, widths[role] * channels
        after_reduction = reduces
    return plans, last


def _residual_cells(cells: int, channels: int) -> list[CellPlan]:
    """Three stages of cells that keep size and channels, with a residual block between two."""
    plans: list[CellPlan] = []
    for index in range(cells):
        after_block = index in reduction_positions(cells)
        if after_block:
            channels *= 2
        plan = CellPlan(
            role="normal",
            c_before_last=channels,
            c_last=channels,
            channels=channels,
            after_reduction=False,
            reduces=False,
            after_block=after_block,
            projects=False,
        )
        plans.append(plan)
    return plans

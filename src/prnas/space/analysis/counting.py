"""The size of a space: operations within n morphing steps, and cells made of them."""

from collections.abc import Iterable
from dataclasses import asdict, replace
from math import comb, prod
from typing import ClassVar

from prnas.space.morphisms import morphs
from prnas.space.operations import Convolution, Operation
from prnas.space.setting import Limits, Setting
from prnas.space.shape import DARTS, CellShape

# The paper counts what five replacing cycles can reach.
PAPER_STEPS = 5
Layers = tuple[tuple[Operation, ...], ...]


def by_distance(setting: Setting, steps: int = PAPER_STEPS) -> Layers:
    """The operations by their exact morphing distance from the initial pool, 0 to `steps`."""
    layers = [tuple(sorted(setting.initial_pool))]
    reached = set(layers[0])
    for _ in range(steps):
        children = {child for op in layers[-1] for _, child in morphs(op, setting.limits)} - reached
        if not children:
            break
        reached |= children
        layers.append(tuple(sorted(children)))
    return tuple(layers)


def links(
    setting: Setting, operations: Iterable[Operation]
) -> list[tuple[Operation, Operation, str]]:
    """Every morphism between two of the operations: (parent, child, the morphism's name)."""
    ends = set(operations)
    return [
        (op, child, morphism.name)
        for op in sorted(ends)
        for morphism, child in morphs(op, setting.limits)
        if child in ends
    ]


def discoverable(setting: Setting, steps: int = PAPER_STEPS) -> tuple[Operation, ...]:
    """All operations that `steps` replacements can reach, those of the initial pool included."""
    return tuple(op for layer in by_distance(setting, steps) for op in layer)


class _LimitsOfThePapersTable(Limits):
    """The same limits, with kernel 1 dilated as any other."""

    dilated_1x1: ClassVar[bool] = True


def count_convs(setting: Setting, steps: int = PAPER_STEPS, dilated_1x1: bool = False) -> int:
    """The number of convolutions within `steps` morphisms.

    `dilated_1x1` counts kernel 1 with dilation 2 too, which the paper's table does although its
    caption says otherwise: 36 and 80 where the rules give 32 and 73.
    """
    if dilated_1x1:
        setting = replace(setting, limits=_LimitsOfThePapersTable(**asdict(setting.limits)))
    return sum(isinstance(op, Convolution) for op in discoverable(setting, steps))


def count_cells(num_operations: int, num_nodes: int = 4, shape: CellShape = DARTS) -> int:
    """The number of cells: each node picks the states that it reads, and an operation for each.

    In DARTS' shape it picks two of the states before it; in that of NAS-Bench-201 it reads all.
    """
    numbers = ((state, shape.num_edges(state)) for state in shape.nodes(num_nodes))
    return prod(comb(state, number) * num_operations**number for state, number in numbers)

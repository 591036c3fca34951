"""Morphisms: how one operation becomes another, value to value.

The weights follow in `prnas.nets.inheritance`. A morphism of any operation is one more entry in
`MORPHISMS`: pools, counts and drawings enumerate that table.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Generic, TypeVar

from prnas.space.operations import Conv, Convolution, Operation
from prnas.space.setting import Limits

Op = TypeVar("Op", bound=Operation)


@dataclass(frozen=True, slots=True)
class Morphism(Generic[Op]):
    """A named change of the operations of one class.

    `when` says whether the child of an operation lies within the limits and is valid, `change`
    makes the child. The setting's limits bound convolutions; any other operation has the range
    that its own checks allow.
    """

    name: str
    operation: type[Op]
    when: Callable[[Op, Limits], bool]
    change: Callable[[Op], Op]

    def legal(self, op: Operation, limits: Limits) -> bool:
        """Whether the morphism applies to `op` and its child stays within the limits."""
        return isinstance(op, self.operation) and self.when(op, limits)

    def apply(self, op: Operation) -> Operation:
        """The child of `op`. Ask `legal` first: an operation of another class is an error."""
        if not isinstance(op, self.operation):
            raise ValueError(f"'{self.name}' does not apply to '{op.label}'")
        return _child(self.change, op)


@lru_cache(maxsize=65_536)  # pools ask for the same few hundred operations again and again
def _child(change: Callable[[Any], Any], op: Operation) -> Operation:
    return change(op)


def _widened(conv: Conv) -> Conv:
    widths = list(conv.expansions)
    widths[widths.index(min(widths))] += 1
    return replace(conv, expansions=tuple(widths))


def _dilated(conv: Convolution) -> bool:
    return isinstance(conv, Conv) and conv.dilation > 1


GROW_KERNEL = Morphism(
    "grow kernel",
    Convolution,
    lambda conv, limits: conv.kernel + 2 <= limits.kernel_max,
    lambda conv: replace(conv, kernel=conv.kernel + 2),
)
SHRINK_KERNEL = Morphism(
    "shrink kernel",
    Convolution,
    lambda conv, limits: (
        conv.kernel - 2 >= limits.kernel_min
        and (conv.kernel > 3 or not _dilated(conv) or limits.dilated_1x1)
    ),
    lambda conv: replace(conv, kernel=conv.kernel - 2),
)
GROW_DILATION = Morphism(
    "grow dilation",
    Conv,
    lambda conv, limits: (
        conv.dilation < limits.dilation_max and (conv.kernel > 1 or limits.dilated_1x1)
    ),
    lambda conv: replace(conv, dilation=conv.dilation + 1),
)
SHRINK_DILATION = Morphism(
    "shrink dilation",
    Conv,
    lambda conv, limits: conv.dilation > 1,
    lambda conv: replace(conv, dilation=conv.dilation - 1),
)
INSERT_EXPANSION = Morphism(
    "insert expansion",
    Conv,
    lambda conv, limits: len(conv.expansions) < limits.depth_bound,
    lambda conv: replace(conv, expansions=(*conv.expansions, 1)),
)
WIDEN = Morphism(
    "widen",
    Conv,
    lambda conv, limits: bool(conv.expansions) and min(conv.expansions) < limits.width_bound,
    _widened,
)

MORPHISMS: dict[str, Morphism[Any]] = {
    morphism.name: morphism
    for morphism in (
        GROW_KERNEL,
        SHRINK_KERNEL,
        GROW_DILATION,
        SHRINK_DILATION,
        INSERT_EXPANSION,
        WIDEN,
    )
}


@lru_cache(maxsize=65_536)
def morphs(op: Operation, limits: Limits) -> tuple[tuple[Morphism[Any], Operation], ...]:
    """Every legal morphism of `op`, with the child it makes."""
    return tuple(
        (morphism, morphism.apply(op))
        for morphism in MORPHISMS.values()
        if morphism.legal(op, limits)
    )


def has_morphisms(op: Operation) -> bool:
    """Whether any morphism applies to operations of this class."""
    return any(isinstance(op, morphism.operation) for morphism in MORPHISMS.values())

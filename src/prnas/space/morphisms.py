"""Morphisms: how one operation becomes another, spec to spec.

The weights follow in `prnas.nets.inheritance`. A morphism for another type of operation (say,
pooling kernels) is one more entry in `MORPHISMS`: everything else enumerates that table.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from prnas.space.operations import Conv, Operation
from prnas.space.setting import Limits


@dataclass(frozen=True, slots=True)
class Morphism:
    """A named change of one operation. `preserving`: the child computes what its parent did."""

    name: str
    preserving: bool
    _legal: Callable[[Operation, Limits], bool]
    _apply: Callable[[Operation], Operation]

    def legal(self, op: Operation, limits: Limits) -> bool:
        """Whether the morphism applies to `op` and its child stays within the limits."""
        return self._legal(op, limits)

    def apply(self, op: Operation) -> Operation:
        """The child of `op`. Ask `legal` first: an operation of another type is an error."""
        return _child(self._apply, op)


@lru_cache(maxsize=65_536)  # pools ask for the same few hundred operations again and again
def _child(apply: Callable[[Operation], Operation], op: Operation) -> Operation:
    return apply(op)


def _for_conv(
    name: str,
    preserving: bool,
    legal: Callable[[Conv, Limits], bool],
    apply: Callable[[Conv], Conv],
) -> Morphism:
    def legal_conv(op: Operation, limits: Limits) -> bool:
        return isinstance(op, Conv) and legal(op, limits)

    def apply_conv(op: Operation) -> Operation:
        if not isinstance(op, Conv):
            raise ValueError(f"'{name}' morphs convolutions, not '{op.label}'")
        return apply(op)

    return Morphism(name, preserving, legal_conv, apply_conv)


def _widened(conv: Conv) -> Conv:
    widths = list(conv.expansions)
    widths[widths.index(min(widths))] += 1
    return replace(conv, expansions=tuple(widths))


GROW_KERNEL = _for_conv(
    "grow kernel",
    True,
    lambda conv, limits: conv.kernel + 2 <= limits.kernel_max,
    lambda conv: replace(conv, kernel=conv.kernel + 2),
)
SHRINK_KERNEL = _for_conv(
    "shrink kernel",
    False,
    lambda conv, limits: (
        conv.kernel - 2 >= limits.kernel_min
        and (conv.kernel > 3 or conv.dilation == 1 or limits.dilated_1x1)
    ),
    lambda conv: replace(conv, kernel=conv.kernel - 2),
)
GROW_DILATION = _for_conv(
    "grow dilation",
    False,
    lambda conv, limits: (
        conv.dilation < limits.dilation_max and (conv.kernel > 1 or limits.dilated_1x1)
    ),
    lambda conv: replace(conv, dilation=conv.dilation + 1),
)
SHRINK_DILATION = _for_conv(
    "shrink dilation",
    False,
    lambda conv, limits: conv.dilation > 1,
    lambda conv: replace(conv, dilation=conv.dilation - 1),
)
INSERT_EXPANSION = _for_conv(
    "insert expansion",
    False,  # but for its ReLU
    lambda conv, limits: len(conv.expansions) < limits.depth_bound,
    lambda conv: replace(conv, expansions=(*conv.expansions, 1)),
)
WIDEN = _for_conv(
    "widen",
    True,
    lambda conv, limits: bool(conv.expansions) and min(conv.expansions) < limits.width_bound,
    _widened,
)

MORPHISMS: dict[str, Morphism] = {
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
def morphs(op: Operation, limits: Limits) -> tuple[tuple[Morphism, Operation], ...]:
    """Every legal morphism of `op`, with the child it makes."""
    return tuple(
        (morphism, morphism.apply(op))
        for morphism in MORPHISMS.values()
        if morphism.legal(op, limits)
    )

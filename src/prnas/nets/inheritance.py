"""Inheritance: how weights follow a morphism, from a parent's module to its child's.

Every depthwise weight is (channels, 1, k, k), every pointwise weight (out, in, 1, 1), every weight
of a full convolution (out, in, k, k); they are never interchanged. Buffers of batch normalisation
(running mean and variance) follow the channels they belong to.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prnas.nets.operations import ConvChain, SeparableConv, build
from prnas.nets.weights import construct, draw_weight
from prnas.space import morphisms as space
from prnas.space.morphisms import MORPHISMS, Morphism, morphs
from prnas.space.operations import OPERATIONS, Operation

# Fills the child's module (all new weights) from its parent's; each is what `build` makes of the
# morphism's operation. Weights that the parent does not have are drawn from the generator.
Rule = Callable[[Any, Any, torch.Generator], None]


@torch.no_grad()
def inherit(
    parent: nn.Module,
    parent_op: Operation,
    morphism: str,
    channels: int,
    stride: int,
    generator: torch.Generator,
) -> nn.Module:
    """The module of `parent_op`'s child by `morphism`, with the weights it inherits.

    `parent` is left as it was; the child shares no tensor with it. New weights are drawn from
    `generator`.
    """
    if morphism not in INHERITANCE:
        raise ValueError(f"no rule says how weights follow the morphism '{morphism}'")
    op = MORPHISMS[morphism].apply(parent_op)
    child = construct(lambda: build(op, channels, stride, affine=False), generator)
    like = next(filter(torch.is_floating_point, parent.state_dict().values()), None)
    if like is not None:
        child.to(like.device, like.dtype)
    INHERITANCE[morphism](child, parent, generator)
    return child.train(parent.training)


def _links(chain: ConvChain) -> list[SeparableConv]:
    return [link for link in chain if isinstance(link, SeparableConv)]


def _kernels(fit: Callable[[Tensor], Tensor]) -> Rule:
    """Weights of depthwise and full convolutions `fit` the child's kernel, all others stay."""

    def rule(child: nn.Module, parent: nn.Module, _: torch.Generator) -> None:
        state = parent.state_dict()
        for name, weight in state.items():
            if name.endswith(("depthwise.weight", "conv.weight")):
                state[name] = fit(weight)
        child.load_state_dict(state)

    return rule


def _insert_expansion(child: ConvChain, parent: ConvChain, _: torch.Generator) -> None:
    *inherited, new = _links(child)
    for link, old in zip(inherited, _links(parent), strict=True):
        link.load_state_dict(old.state_dict())
    nn.init.dirac_(new.depthwise.weight, groups=new.depthwise.groups)
    nn.init.dirac_(new.pointwise.weight)


def _widen(child: ConvChain, parent: ConvChain, generator: torch.Generator) -> None:
    """The widened layer's new channels are random; the pointwise weights that read them are zero.

    The next depthwise kernels of the new channels are random as well: with zeros in both, neither
    would ever receive a gradient.
    """
    for new, old in zip(_links(child), _links(parent), strict=True):
        draw_weight(new.depthwise.weight, generator)
        draw_weight(new.pointwise.weight, generator)
        new.pointwise.weight[:, old.pointwise.in_channels :] = 0
        state = new.state_dict()
        for name, tensor in old.state_dict().items():
            state[name][tuple(map(slice, tensor.shape))] = tensor


INHERITANCE: dict[str, Rule] = {
    space.GROW_KERNEL.name: _kernels(lambda weight: F.pad(weight, (1, 1, 1, 1))),
    space.SHRINK_KERNEL.name: _kernels(lambda weight: weight[:, :, 1:-1, 1:-1]),
    space.GROW_DILATION.name: _kernels(lambda weight: weight),
    space.SHRINK_DILATION.name: _kernels(lambda weight: weight),
    space.INSERT_EXPANSION.name: _insert_expansion,
    space.WIDEN.name: _widen,
}


def register(morphism: Morphism[Any], rule: Rule) -> None:
    """Let searches use a morphism that is not part of prnas, and a rule by which weights follow."""
    name = morphism.name
    if name in INHERITANCE and INHERITANCE[name].__module__ == __name__:
        raise ValueError(f"'{name}' is a morphism of prnas; give yours another name")
    if morphism.operation not in OPERATIONS.values():
        raise ValueError(
            f"{morphism.operation.__name__}, which '{name}' changes, is not registered"
        )
    MORPHISMS[name], INHERITANCE[name] = morphism, rule
    morphs.cache_clear()

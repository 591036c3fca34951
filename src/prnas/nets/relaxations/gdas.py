"""The relaxation of GDAS (Dong and Yang, 2019): one sampled candidate on every edge."""
# pyright: reportIncompatibleMethodOverride=false

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from prnas.nets.relaxations.base import Relaxation, nonzero
from prnas.nets.relaxations.concrete import gumbel
from prnas.nets.search_cell import ActiveCell
from prnas.space.genotype import Role


class Gdas(Relaxation):
    """Both parts of a step draw a candidate for each edge, by the architecture weights' softmax.

    It alone is computed, with weight 1. The gradient is that of a softmax of the same draw, whose
    temperature falls (straight-through). Evaluated, each edge has its best candidate.
    """

    name = "gdas"
    architecture_share = 0.25
    weights_share = 0.25
    measurable = False  # all but one have no weight there

    def mix(
        self, role: Role, weights: Sequence[Tensor], generator: torch.Generator | None
    ) -> list[Tensor]:
        if not self.training or generator is None:
            return [one_hot(edge) for edge in weights]
        temperature = self.temperature
        noise = gumbel([len(edge) for edge in weights], generator, weights[0])
        pairs = zip(weights, noise, strict=True)
        soft = [((edge.log_softmax(0) + g) / temperature).softmax(0) for edge, g in pairs]
        return [straight_through(edge) for edge in soft]

    def active(self, role: Role, mixing: Sequence[Tensor]) -> ActiveCell | None:
        return nonzero(mixing)


def one_hot(weights: Tensor) -> Tensor:
    """1 for the largest, 0 for the others."""
    return torch.zeros_like(weights).scatter(0, weights.argmax(0, keepdim=True), 1.0)


def straight_through(soft: Tensor, hard: Tensor | None = None) -> Tensor:
    """Exactly `hard`, by default 1 for the largest; gradients pass as if it were `soft`."""
    made: Any = _StraightThrough.apply(soft, one_hot(soft.detach()) if hard is None else hard)
    return made


class _StraightThrough(Function):
    @staticmethod
    def forward(ctx: Any, soft: Tensor, hard: Tensor) -> Tensor:
        return hard.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad, None

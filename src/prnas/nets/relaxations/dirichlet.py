"""The relaxation of DrNAS (Chen et al., 2021): a distribution of mixing weights is learned."""
# pyright: reportIncompatibleMethodOverride=false

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from prnas.nets.devices import to_device
from prnas.nets.relaxations.base import Relaxation
from prnas.space.genotype import Role

# PyTorch's own distribution takes no generator; these are what it is made of.
_sample: Any = torch._sample_dirichlet  # pyright: ignore[reportPrivateImportUsage]
_slope: Any = torch._dirichlet_grad  # pyright: ignore[reportPrivateImportUsage]


class Dirichlet(Relaxation):
    """Mixing weights are drawn anew in every pass, for all cells of a role together.

    The gradient is that of the drawn weights by the concentrations (pathwise). Evaluated, it mixes
    by their mean.
    """

    name = "dirichlet"

    def mix(
        self, role: Role, weights: Sequence[Tensor], generator: torch.Generator | None
    ) -> list[Tensor]:
        concentrations = [concentration(edge) for edge in weights]
        if not self.training or generator is None:
            return [edge / edge.sum() for edge in concentrations]
        return drawn(concentrations, generator)

    def penalty(self, weights: Mapping[Role, Sequence[Tensor]]) -> Tensor | None:
        if not self.settings.dirichlet_kl:
            return None
        edges = [concentration(edge) for cell in weights.values() for edge in cell]
        return self.settings.dirichlet_kl * torch.stack([divergence(edge) for edge in edges]).sum()


def concentration(weights: Tensor) -> Tensor:
    """Above 0, and 1 where an architecture weight is 0: all mixtures are equally likely."""
    return F.elu(weights) + 1


def divergence(concentration: Tensor) -> Tensor:
    """Kullback and Leibler's, from the distribution in which all mixtures are equally likely."""
    total = concentration.sum()
    number = torch.full_like(total, len(concentration))
    logs = (concentration - 1) * (concentration.digamma() - total.digamma())
    return total.lgamma() - concentration.lgamma().sum() - number.lgamma() + logs.sum()


def drawn(concentrations: Sequence[Tensor], generator: torch.Generator) -> list[Tensor]:
    """A sample for each edge."""
    sizes = [len(edge) for edge in concentrations]
    samples: Any = _Sample.apply(generator, sizes, torch.cat(list(concentrations)))
    return list(samples.split(sizes))


class _Sample(Function):
    """Samples of all edges in one row, drawn where the generator lives, so on the CPU."""

    @staticmethod
    def forward(
        ctx: Any, generator: torch.Generator, sizes: list[int], concentrations: Tensor
    ) -> Tensor:
        rows = concentrations.detach().cpu().double().split(sizes)
        samples = [_sample(row, generator) for row in rows]
        ctx.edges = list(zip(samples, rows, strict=True))
        return to_device(torch.cat(samples).to(concentrations.dtype), concentrations.device)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        rows = grad.cpu().double().split([len(sample) for sample, _ in ctx.edges])
        gradients: list[Tensor] = []
        for (sample, row), along in zip(ctx.edges, rows, strict=True):
            slope = _slope(sample, row, row.sum().expand_as(row).contiguous())
            gradients.append(slope * (along - (sample * along).sum()))
        return None, None, to_device(torch.cat(gradients).to(grad.dtype), grad.device)

"""The relaxation of SNAS: samples of a concrete distribution.

Xie, Zheng, Liu, Lin: SNAS: Stochastic Neural Architecture Search. ICLR 2019.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from prnas.nets.devices import to_device
from prnas.nets.relaxations.base import Relaxation
from prnas.space.genotype import Role


class Concrete(Relaxation):
    """Candidates are mixed by a sample that is nearly one-hot when the temperature is low.

    One sample for each pass, shared by all cells of a role. Where nothing is trained the
    probabilities themselves mix, so that evaluations are not random.
    """

    name = "concrete"

    def mix(
        self, role: Role, weights: Sequence[Tensor], generator: torch.Generator | None
    ) -> list[Tensor]:
        if not self.training or generator is None:
            return [edge.softmax(dim=0) for edge in weights]
        temperature = self.temperature
        noises = gumbel([len(edge) for edge in weights], generator, weights[0])
        pairs = zip(weights, noises, strict=True)
        return [((edge + noise) / temperature).softmax(dim=0) for edge, noise in pairs]


def gumbel(sizes: Sequence[int], generator: torch.Generator, like: Tensor) -> list[Tensor]:
    """Standard Gumbel noise, a tensor for each edge, of the type and device of `like`."""
    uniform = torch.rand(
        sum(sizes), dtype=torch.float64, generator=generator, device=generator.device
    )
    tiny = torch.finfo(torch.float64).tiny
    noise = -(-uniform.clamp_min(tiny).log()).clamp_min(tiny).log()
    return list(to_device(noise.to(like.dtype), like.device).split(list(sizes)))

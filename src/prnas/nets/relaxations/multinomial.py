"""The relaxation of MDENAS: architecture weights are probabilities.

Zheng, Ji, Tang, Zhang, Liu, Tian: Multinomial Distribution Learning for Effective Neural
Architecture Search. ICCV 2019.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from prnas.nets.relaxations.base import Relaxation
from prnas.space.genotype import Role
from prnas.space.scores import identity


class Multinomial(Relaxation):
    """A candidate's architecture weight is its probability, which its step moves after an epoch.

    That step samples one candidate on every edge; mixed by probabilities they are only measured.
    """

    name = "multinomial"
    scores = staticmethod(identity)

    def initial(self, size: int, like: Tensor) -> Tensor:
        return like.new_full((size,), 1 / size)

    def mix(
        self, role: Role, weights: Sequence[Tensor], generator: torch.Generator | None
    ) -> list[Tensor]:
        return list(weights)

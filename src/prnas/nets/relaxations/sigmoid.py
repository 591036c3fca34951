"""The relaxation of FairDARTS (Chu et al., 2020): candidates do not compete."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from prnas.nets.relaxations.base import Relaxation
from prnas.space.genotype import Role
from prnas.space.scores import sigmoid


class Sigmoid(Relaxation):
    """Each candidate's weight is its own sigmoid, whatever the others on its edge have.

    The zero-one loss drives the weights away from 1/2, to 0 or to 1.
    """

    name = "sigmoid"
    scores = staticmethod(sigmoid)

    def mix(
        self, role: Role, weights: Sequence[Tensor], generator: torch.Generator | None
    ) -> list[Tensor]:
        return [edge.sigmoid() for edge in weights]

    def penalty(self, weights: Mapping[Role, Sequence[Tensor]]) -> Tensor | None:
        if not self.settings.zero_one:
            return None
        mixing = torch.cat([edge.sigmoid() for edges in weights.values() for edge in edges])
        return -self.settings.zero_one * (mixing - 0.5).square().mean()

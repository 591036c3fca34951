"""The relaxation of sharpDARTS: Max-W.

Hundt, Jain, Hager: sharpDARTS: Faster and More Accurate Differentiable Architecture Search. 2019.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from prnas.nets.relaxations.base import Relaxation
from prnas.space.genotype import Role


class MaxW(Relaxation):
    """The best candidate has a weight of 1, others less by as much as their probability is.

    So the leader has nothing to win by leading further.
    """

    name = "max-w"

    def mix(
        self, role: Role, weights: Sequence[Tensor], generator: torch.Generator | None
    ) -> list[Tensor]:
        probabilities = (edge.softmax(dim=0) for edge in weights)
        # In this order of operations the best weight is 1 exactly.
        return [1 - (edge.max() - edge) for edge in probabilities]

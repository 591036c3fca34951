"""The relaxation of DARTS."""

from collections.abc import Sequence

import torch
from torch import Tensor

from prnas.nets.relaxations.base import Relaxation
from prnas.space.genotype import Role


class Softmax(Relaxation):
    """The relaxation of DARTS: candidates are mixed by their probabilities."""

    name = "softmax"

    def mix(
        self, role: Role, weights: Sequence[Tensor], generator: torch.Generator | None
    ) -> list[Tensor]:
        return [edge.softmax(dim=0) for edge in weights]

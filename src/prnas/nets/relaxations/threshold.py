"""The relaxation of ASAP: a cooling softmax that leaves out what falls below a threshold.

Noy, Nayman, Ridnik, Zamir, Doveh, Friedman, Giryes, Zelnik-Manor: ASAP: Architecture Search, Anneal
and Prune. AISTATS 2020.
"""

from collections.abc import Mapping, Sequence
from typing import cast

import torch
from torch import Tensor

from prnas.nets.relaxations.base import Relaxation, nonzero
from prnas.nets.search_cell import ActiveCell
from prnas.space.genotype import Role
from prnas.space.pools import Pools
from prnas.space.scores import exponential

# What a candidate that was left out has less in its logarithm: it is judged behind all others.
_LEFT_OUT = 60.0


class Threshold(Relaxation):
    """A softmax with a temperature, over the candidates that are left.

    After each epoch but the grace epochs, candidates go whose probability is below the threshold,
    a share of the even probability. They are not computed any more in this cycle, and at its end
    they are judged behind all others.
    """

    name = "threshold"
    scores = staticmethod(exponential)

    def reset(self, pools: Pools, like: Tensor) -> None:
        for role in pools.roles:
            for number, edge in enumerate(pools.cell(role).edges):
                left = torch.ones(len(edge.candidates), dtype=torch.bool, device=like.device)
                self.register_buffer(f"{role}_{number}", left)

    def _left(self, role: Role, number: int) -> Tensor:
        """A mask of the candidates of an edge that are left."""
        return cast(Tensor, self.get_buffer(f"{role}_{number}"))

    def mix(
        self, role: Role, weights: Sequence[Tensor], generator: torch.Generator | None
    ) -> list[Tensor]:
        temperature = self.temperature
        return [
            (edge / temperature).masked_fill(~self._left(role, number), -torch.inf).softmax(dim=0)
            for number, edge in enumerate(weights)
        ]

    def active(self, role: Role, mixing: Sequence[Tensor]) -> ActiveCell | None:
        active = nonzero([self._left(role, number) for number in range(len(mixing))])
        complete = all(
            len(indices) == len(edge) for indices, edge in zip(active, mixing, strict=True)
        )
        return None if complete else active

    def judged(self, role: Role, weights: Sequence[Tensor]) -> list[Tensor]:
        """Logarithms of probabilities at temperature 1, over all candidates of the cycle.

        They tell edges apart even where a single candidate is left on each.
        """
        return [
            edge.double().log_softmax(dim=0) - _LEFT_OUT * ~self._left(role, number)
            for number, edge in enumerate(weights)
        ]

    def end_epoch(self, weights: Mapping[Role, Sequence[Tensor]]) -> None:
        if self.progress.epoch < self.progress.grace_epochs:
            return
        for role, edges in weights.items():
            for number, probabilities in enumerate(self.mix(role, edges, None)):
                least = self.settings.threshold / len(probabilities)
                self._left(role, number).logical_and_(probabilities >= least)

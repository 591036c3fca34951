"""The base of relaxations: how architecture weights mix the candidates of an edge.

A relaxation is a module of the supernet. So it knows whether it trains or is evaluated
(`self.training`), may have parameters of its own, which are trained, saved and resumed with the
architecture weights, and buffers, which are saved and resumed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from prnas.config.architecture import Anneal, ArchitectureConfig
from prnas.nets.search_cell import ActiveCell
from prnas.space.genotype import Role
from prnas.space.pools import Pools
from prnas.space.scores import Scores, softmax

Part = Literal["weights", "architecture"]


@dataclass(frozen=True, slots=True)
class CycleProgress:
    """The progress of a cycle before a step; epochs count from 0."""

    epoch: int = 0
    epochs: int = 1
    grace_epochs: int = 0
    fraction: float = 0.0  # fraction of the cycle's training images that were seen

    @property
    def after_grace(self) -> float:
        """Progress from 0, until the first epoch after the grace epochs, to 1 in the last epoch."""
        last = self.epochs - 1 - self.grace_epochs
        if last <= 0:
            return float(self.epoch >= self.grace_epochs)
        return min(max((self.epoch - self.grace_epochs) / last, 0.0), 1.0)

    def annealed(self, anneal: Anneal) -> float:
        """A value that changes from epoch to epoch after the grace epochs."""
        return anneal.at(self.after_grace)


class Relaxation(nn.Module):
    """The base of all relaxations. A subclass says at least how to `mix`."""

    name: ClassVar[str]
    scores: ClassVar[Scores] = staticmethod(softmax)
    # The share of the supernet's work that each part of a step does, if not all are `active`; for
    # estimates of the time left.
    architecture_share: ClassVar[float] = 1.0
    weights_share: ClassVar[float] = 1.0
    pools: Pools  # those of the cycle, set before `initial` and `reset` are called
    # Whether it shows what a candidate is worth to leave it out when the supernet is evaluated.
    measurable: ClassVar[bool] = True

    def __init__(self, settings: ArchitectureConfig) -> None:
        super().__init__()
        self.settings = settings
        self.progress = CycleProgress()  # set by the search before every step
        # The parts that the pass under way computes gradients for (`Supernet.training_only`);
        # none when the supernet is evaluated or measured.
        self.trained: tuple[Part, ...] = ()

    @property
    def temperature(self) -> float:
        """The temperature of the present epoch."""
        anneal = self.settings.temperature
        return 1.0 if anneal is None else self.progress.annealed(anneal)

    def mix(
        self, role: Role, weights: Sequence[Tensor], generator: torch.Generator | None
    ) -> list[Tensor]:
        """Mixing weights, a tensor for each edge, from the architecture weights of a cell's edges.

        Draws random numbers, if any, from `generator`: a resumed search then repeats them.
        """
        raise NotImplementedError

    def active(self, role: Role, mixing: Sequence[Tensor]) -> ActiveCell | None:
        """The candidates of a cell that are computed, given their mixing weights; `None`: all.

        The others get no gradient, not even those of their mixing weights.
        """
        return None

    def judged(self, role: Role, weights: Sequence[Tensor]) -> list[Tensor]:
        """The numbers that `scores` and records get for the architecture weights of a cell's edges.

        By default the architecture weights themselves. Scores that depend on more than those of one
        edge (on other edges, on parameters or buffers) are made here.
        """
        return list(weights)

    def penalty(self, weights: Mapping[Role, Sequence[Tensor]]) -> Tensor | None:
        """An optional term of the architecture weights' loss."""
        return None

    def initial(self, size: int, like: Tensor) -> Tensor:
        """The architecture weights that an edge of so many candidates begins a cycle with."""
        return like.new_zeros(size)

    def project(self, weights: Mapping[Role, Sequence[Tensor]]) -> None:
        """After an architecture step: bring the architecture weights back to where they may be."""

    def reset(self, pools: Pools, like: Tensor) -> None:
        """A cycle begins with these pools: make parameters anew, of the type and device of `like`.

        Names and shapes must follow from the pools alone, since a checkpoint is loaded into them.
        So it is with buffers.
        """

    def end_epoch(self, weights: Mapping[Role, Sequence[Tensor]]) -> None:
        """After the last step of an epoch. What it changes must be in parameters or buffers."""


def nonzero(mixing: Sequence[Tensor]) -> ActiveCell:
    """The candidates whose mixing weight is not 0; the host waits for them."""
    sizes = [len(edge) for edge in mixing]
    is_active = torch.cat([edge.detach() for edge in mixing]).ne(0).tolist()
    active: list[tuple[int, ...]] = []
    first = 0
    for size in sizes:
        active.append(tuple(index for index in range(size) if is_active[first + index]))
        first += size
    return tuple(active)

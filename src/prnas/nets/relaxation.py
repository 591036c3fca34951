"""Relaxations: how architecture weights mix the candidates of an edge while a supernet trains.

A relaxation is a module of the supernet. So it knows whether it trains or is evaluated
(`self.training`), and may have parameters of its own, which are trained, saved and resumed with the
architecture weights. `prnas.config.search.RELAXATIONS` lists the names that a config may say, each
with the scores by which candidates are pruned, parents drawn and the genotype derived.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from prnas.config import search as config
from prnas.config.search import ArchitectureConfig
from prnas.space.genotype import Role
from prnas.space.pools import Pools
from prnas.space.scores import Scores, softmax


@dataclass(frozen=True, slots=True)
class CycleProgress:
    """The progress of a cycle before a step; epochs count from 0."""

    epoch: int = 0
    epochs: int = 1
    grace_epochs: int = 0
    fraction: float = 0.0  # fraction of the cycle's training images that were seen


class Relaxation(nn.Module):
    """The base of all relaxations. A subclass says at least how to `mix`."""

    name: ClassVar[str]
    scores: ClassVar[Scores] = staticmethod(softmax)

    def __init__(self, settings: ArchitectureConfig) -> None:
        super().__init__()
        self.settings = settings
        self.progress = CycleProgress()  # set by the search before every step

    def mix(
        self, role: Role, weights: Sequence[Tensor], generator: torch.Generator | None
    ) -> list[Tensor]:
        """Mixing weights, a tensor for each edge, from the architecture weights of a cell's edges.

        Draws random numbers, if any, from `generator`: a resumed search then repeats them.
        """
        raise NotImplementedError

    def penalty(self, weights: Mapping[Role, Sequence[Tensor]]) -> Tensor | None:
        """An optional term of the architecture weights' loss."""
        return None

    def reset(self, pools: Pools, like: Tensor) -> None:
        """A cycle begins with these pools: make parameters anew, of the type and device of `like`.

        Names and shapes must follow from the pools alone, since a checkpoint is loaded into them.
        """


class Softmax(Relaxation):
    """The relaxation of DARTS: candidates are mixed by their probabilities."""

    name = "softmax"

    def mix(
        self, role: Role, weights: Sequence[Tensor], generator: torch.Generator | None
    ) -> list[Tensor]:
        return [edge.softmax(dim=0) for edge in weights]


_CLASSES: dict[str, type[Relaxation]] = {kind.name: kind for kind in (Softmax,)}


def register(kind: type[Relaxation]) -> None:
    """Let configs name a relaxation that is not part of prnas.

    A program may register it again, e.g. in a notebook; the names of prnas are taken.
    """
    registered = _CLASSES.get(kind.name, kind)
    if registered is not kind and registered.__module__ == __name__:
        raise ValueError(f"'{kind.name}' is a relaxation of prnas; give yours another name")
    _CLASSES[kind.name] = kind
    config.RELAXATIONS[kind.name] = kind.scores


def make_relaxation(settings: ArchitectureConfig) -> Relaxation:
    """The relaxation that a config names."""
    return _CLASSES[settings.relaxation](settings)

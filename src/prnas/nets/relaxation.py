"""How architecture weights mix the candidates of an edge.

A relaxation is any callable of this shape; the supernet asks for nothing else. Sampling ones draw
from the generator that the forward pass was given.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor


class Relaxation(Protocol):
    """Mixing weights, one tensor an edge, from the architecture weights of a cell's edges."""

    def __call__(
        self, architecture: Sequence[Tensor], generator: torch.Generator | None
    ) -> list[Tensor]: ...


def softmax(
    architecture: Sequence[Tensor], generator: torch.Generator | None = None
) -> list[Tensor]:
    """DARTS's: the probabilities of the candidates."""
    return [weights.softmax(dim=0) for weights in architecture]


# By the names that configs use.
RELAXATIONS: dict[str, Relaxation] = {"softmax": softmax}

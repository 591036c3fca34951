"""A relaxation of one's own: a softmax whose temperature falls, and a penalty on indecision."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

import prnas
from prnas.nets.relaxations import Relaxation, register
from prnas.space.genotype import Role

TINY = Path(__file__).with_name("tiny.yaml")


class CoolingSoftmax(Relaxation):
    """Softmax at a temperature that falls from 5 to 1 within every cycle.

    The penalty is the mean entropy of the edges: weights that cannot decide cost something. The
    scores that prune and choose parents stay those of the plain softmax, the base class's.
    """

    name = "cooling-softmax"

    def mix(
        self, role: Role, weights: Sequence[Tensor], generator: torch.Generator | None
    ) -> list[Tensor]:
        temperature = 5.0 - 4.0 * self.progress.fraction if self.training else 1.0
        return [(edge / temperature).softmax(dim=0) for edge in weights]

    def penalty(self, weights: Mapping[Role, Sequence[Tensor]]) -> Tensor | None:
        edges = [edge.log_softmax(dim=0) for cell in weights.values() for edge in cell]
        entropies = [-(edge.exp() * edge).sum() for edge in edges]
        return 0.1 * torch.stack(entropies).mean()


register(CoolingSoftmax)

if __name__ == "__main__":
    result = prnas.search(TINY, overrides=["architecture.relaxation=cooling-softmax"])
    print(result.genotype)

"""Terms of the architecture weights' loss that are options of any relaxation."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from prnas.nets.relaxations.base import Relaxation
from prnas.space.genotype import Role


def penalty_of(relaxation: Relaxation, weights: Mapping[Role, Sequence[Tensor]]) -> Tensor | None:
    """The relaxation's own term and those that its settings ask for; `None` if there are none."""
    settings, progress = relaxation.settings, relaxation.progress
    terms = [relaxation.penalty(weights)]
    if settings.beta_decay is not None:
        strength = progress.annealed(settings.beta_decay)
        terms.append(strength * beta_decay(weights) if strength else None)
    total: Tensor | None = None
    for term in terms:
        if term is not None:
            total = term if total is None else total + term
    return total


def beta_decay(weights: Mapping[Role, Sequence[Tensor]]) -> Tensor:
    """The regularisation of β-DARTS (Ye et al., 2022): it pulls down what leads on its edge.

    Its gradient by an architecture weight is the candidate's probability, over the edges' number.
    """
    edges = [edge.logsumexp(dim=0) for cell in weights.values() for edge in cell]
    return torch.stack(edges).mean()

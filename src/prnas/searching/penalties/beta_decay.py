"""The regularisation of β-DARTS (Ye et al., 2022): no candidate runs away from the others early."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from prnas.config.search import SearchConfig
from prnas.searching.penalties.base import Penalty
from prnas.space.genotype import Role


class BetaDecay(Penalty):
    """Decays the mixing weights (the paper's β) of what leads on its edge, more and more."""

    @staticmethod
    def wanted(config: SearchConfig) -> bool:
        return config.architecture.beta_decay is not None

    def __call__(self) -> Tensor:
        anneal = self.search.config.architecture.beta_decay
        assert anneal is not None, "else it is not wanted"
        strength = self.search.progress.annealed(anneal)
        return strength * beta_loss(self.search.state.supernet.all_architecture_weights())


def beta_loss(weights: Mapping[Role, Sequence[Tensor]]) -> Tensor:
    """The mean over all edges of both cells of log(sum(exp(architecture weights))).

    Its gradient by an architecture weight is the candidate's probability over the edges' number.
    """
    edges = [edge.logsumexp(dim=0) for cell in weights.values() for edge in cell]
    return torch.stack(edges).mean()

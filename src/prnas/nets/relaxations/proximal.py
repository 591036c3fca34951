"""The relaxation of NASP: the discrete network in every pass, continuous architecture weights.

Yao, Xu, Tu, Zhu: Efficient Neural Architecture Search via Proximal Iterations. AAAI 2020.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from prnas.nets.relaxations.base import Relaxation, nonzero
from prnas.nets.search_cell import ActiveCell
from prnas.space.genotype import Role
from prnas.space.operations import Zero
from prnas.space.scores import identity


class Proximal(Relaxation):
    """Mixing weights are those of the genotype that the architecture weights would derive.

    An architecture step computes all candidates and takes the gradient at that discrete point; it
    moves the continuous weights, which stay within [0, 1]. A weight step computes the chosen
    candidates alone.
    """

    name = "proximal"
    scores = staticmethod(identity)
    weights_share = 0.25
    measurable = False  # all but one have no weight when nothing is trained

    def initial(self, size: int, like: Tensor) -> Tensor:
        return like.new_full((size,), 0.5)

    def mix(
        self, role: Role, weights: Sequence[Tensor], generator: torch.Generator | None
    ) -> list[Tensor]:
        discrete = self.discrete(role, weights)
        if "architecture" not in self.trained:
            return discrete
        # The values are those of `discrete`, the gradients go to the architecture weights.
        pairs = zip(discrete, weights, strict=True)
        return [mixing + (edge - edge.detach()) for mixing, edge in pairs]

    def active(self, role: Role, mixing: Sequence[Tensor]) -> ActiveCell | None:
        return None if "architecture" in self.trained else nonzero(mixing)

    @torch.no_grad()
    def discrete(self, role: Role, weights: Sequence[Tensor]) -> list[Tensor]:
        """1 for the best candidate of each edge that its node keeps, else 0.

        The first of equals is the best, of candidates as of edges.
        """
        cell = self.pools.cell(role)
        best: list[Tensor] = []  # The greatest weight of each edge.
        chosen: list[Tensor] = []
        for pool, edge in zip(cell.edges, weights, strict=True):
            allowed = edge.detach()
            zeros = [isinstance(op, Zero) for op in pool.candidates]
            if cell.shape.reads == "two" and not all(zeros):  # Genotypes have no zero there.
                index = [i for i, is_zero in enumerate(zeros) if is_zero]
                allowed = allowed.clone()
                allowed[index] = -1.0
            best.append(allowed.max())
            one_hot = torch.zeros_like(allowed)
            chosen.append(one_hot.scatter_(0, allowed.argmax().reshape(1), 1.0))
        for state in cell.shape.nodes(cell.num_nodes):
            edges = [i for i, position in enumerate(cell.positions) if position[0] == state]
            number = cell.shape.num_edges(state)
            order = torch.stack([best[i] for i in edges]).sort(descending=True, stable=True)
            rank = order.indices.argsort()
            for edge, own_rank in zip(edges, rank, strict=True):
                chosen[edge] = chosen[edge] * (own_rank < number)
        return chosen

    def project(self, weights: Mapping[Role, Sequence[Tensor]]) -> None:
        for edges in weights.values():
            for edge in edges:
                edge.clamp_(0.0, 1.0)

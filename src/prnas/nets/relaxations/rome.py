"""The relaxation of ROME: GDAS that also samples which edges a node has.

Wang, Chu, Fan, Zhang, Zhang, Yang, Yan: ROME: Robustifying Memory-Efficient NAS via Topology
Disentanglement and Gradient Accumulation. ICCV 2023.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from prnas.nets.relaxations.base import Relaxation, nonzero
from prnas.nets.relaxations.concrete import gumbel
from prnas.nets.relaxations.gdas import one_hot, straight_through
from prnas.nets.search_cell import ActiveCell
from prnas.space.genotype import Role
from prnas.space.pools import Pools
from prnas.space.scores import exponential


class Rome(Relaxation):
    """Draws as many edges of a node as a genotype has, and one candidate on each of them.

    So the sampled network has the topology of those that are derived. Edges have weights of their
    own for it. Evaluated, each node has its best edges, with their best candidates.
    """

    name = "rome"
    scores = staticmethod(exponential)
    architecture_share = 0.15
    weights_share = 0.15
    measurable = False  # all but one have no weight when nothing is trained

    def reset(self, pools: Pools, like: Tensor) -> None:
        for role in pools.roles:
            nodes = pools.shape.nodes(pools.cell(role).num_nodes)
            weights = nn.ParameterList(map(like.new_zeros, nodes))
            self.add_module(role, weights)

    def nodes(self, role: Role) -> list[Tensor]:
        """The weights of the edges into each node."""
        return list(self.get_submodule(role).parameters())

    def mix(
        self, role: Role, weights: Sequence[Tensor], generator: torch.Generator | None
    ) -> list[Tensor]:
        nodes = self.nodes(role)
        counts = [self.pools.shape.num_edges(len(node)) for node in nodes]
        if not self.training or generator is None:
            chosen = [largest(node, count) for node, count in zip(nodes, counts, strict=True)]
            edges = [edge for node in chosen for edge in node.unbind()]
            return [one_hot(w) * edge for w, edge in zip(weights, edges, strict=True)]
        soft = self._drawn([*weights, *nodes], generator)
        operations = [straight_through(edge) for edge in soft[: len(weights)]]
        edges = [
            edge
            for node, count in zip(soft[len(weights) :], counts, strict=True)
            for edge in straight_through(node, largest(node, count)).unbind()
        ]
        return [mixing * edge for mixing, edge in zip(operations, edges, strict=True)]

    def _drawn(self, weights: Sequence[Tensor], generator: torch.Generator) -> list[Tensor]:
        temperature = self.temperature
        noise = gumbel([len(edge) for edge in weights], generator, weights[0])
        pairs = zip(weights, noise, strict=True)
        return [((edge.log_softmax(0) + g) / temperature).softmax(0) for edge, g in pairs]

    def active(self, role: Role, mixing: Sequence[Tensor]) -> ActiveCell | None:
        return nonzero(mixing)

    def judged(self, role: Role, weights: Sequence[Tensor]) -> list[Tensor]:
        """Logarithms: of an edge's probability, less how far a candidate is behind its best."""
        edges = [
            edge for node in self.nodes(role) for edge in node.double().log_softmax(0).unbind()
        ]
        return [
            logits.double() - logits.double().max() + edge
            for logits, edge in zip(weights, edges, strict=True)
        ]


def largest(weights: Tensor, number: int) -> Tensor:
    """1 for so many of the largest, 0 for the others."""
    return torch.zeros_like(weights).scatter(0, weights.detach().topk(number).indices, 1.0)

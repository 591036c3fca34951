"""REINFORCE (Williams, 1992) on a plain policy: a softmax for every choice, none with memory."""

import math
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from prnas.searchers.base import Evaluated, Proposal, Searcher
from prnas.searchers.cells import CellSpace, EdgeKey
from prnas.space.genotype import Cell, Edge, Genotype, Node
from prnas.space.shape import Role

_BETAS, _EPSILON = (0.9, 0.999), 1e-8  # Constants of Adam.
_START = 1e-3  # deviation of the first logits


class Reinforce(Searcher):
    """The baseline of NAS-Bench-201: logits of the operations on each edge, trained by Adam.

    The reward is the score, less a moving average of scores that has seen this one. Where nodes
    choose their inputs, these are drawn uniformly: only operations are learnt.
    """

    name: ClassVar[str] = "reinforce"

    def __init__(
        self, space: CellSpace, generator: Random, lr: float = 0.01, decay: float = 0.9
    ) -> None:
        super().__init__(space, generator)
        self.lr, self.decay = lr, decay
        self.logits = {
            key: [generator.gauss(0, _START) for _ in ops] for key, ops in space.choices.items()
        }
        self._means = {key: [0.0] * len(values) for key, values in self.logits.items()}
        self._squares = {key: [0.0] * len(values) for key, values in self.logits.items()}
        self._sum = self._weight = 0.0  # Sum and weight of the moving average.

    def probabilities(self, key: EdgeKey) -> list[float]:
        """Probabilities of the operations on an edge, should it be in the cell."""
        return softmax(self.logits[key])

    def _propose(self) -> Proposal:
        shape, generator = self.space.shape, self.generator

        def cell(role: Role) -> Cell:
            drawn = self.space.draw(generator).cell(role)  # for its inputs
            nodes: list[Node] = []
            for state, node in zip(shape.nodes(self.space.num_nodes), drawn.nodes, strict=True):
                keys: list[EdgeKey] = [(role, state, edge.input) for edge in node]
                ops = [
                    generator.choices(self.space.choices[key], self.probabilities(key))[0]
                    for key in keys
                ]
                nodes.append(tuple(Edge(key[2], op) for key, op in zip(keys, ops, strict=True)))
            return Cell(tuple(nodes), drawn.concat, shape=shape)

        return Proposal(Genotype.of({role: cell(role) for role in shape.roles}))

    def _learn(self, evaluated: Evaluated, proposal: Proposal) -> None:
        self._sum = self.decay * self._sum + (1 - self.decay) * evaluated.score
        self._weight = self.decay * self._weight + (1 - self.decay)
        advantage = evaluated.score - self._sum / self._weight
        gradients = self.gradients(evaluated.genotype, advantage)
        corrections = [1 - beta**self.num_evaluations for beta in _BETAS]
        for key, logits in self.logits.items():
            gradient = gradients.get(key, [0.0] * len(logits))
            means, squares = self._means[key], self._squares[key]
            for i, slope in enumerate(gradient):
                means[i] = _BETAS[0] * means[i] + (1 - _BETAS[0]) * slope
                squares[i] = _BETAS[1] * squares[i] + (1 - _BETAS[1]) * slope**2
                scale = math.sqrt(squares[i] / corrections[1]) + _EPSILON
                logits[i] -= self.lr * (means[i] / corrections[0]) / scale

    def gradients(self, genotype: Genotype, advantage: float) -> dict[EdgeKey, list[float]]:
        """Gradients by the logits of a cell's negative log-probability, times its advantage."""
        gradients: dict[EdgeKey, list[float]] = {}
        for role in genotype.roles:
            for state, edge in genotype.cell(role).edges:
                key: EdgeKey = (role, state, edge.input)
                chosen = self.space.choices[key].index(edge.op)
                gradients[key] = [
                    advantage * (probability - (i == chosen))
                    for i, probability in enumerate(self.probabilities(key))
                ]
        return gradients

    def _own_state(self) -> dict[str, Any]:
        tables = (self.logits, self._means, self._squares)
        return {
            "policy": [list(rows) for rows in zip(*(t.values() for t in tables), strict=True)],
            "baseline": [self._sum, self._weight],
        }

    def _load_own(self, state: Mapping[str, Any]) -> None:
        rows = zip(self.logits, state["policy"], strict=True)
        for key, (logits, means, squares) in rows:
            if not len(self.logits[key]) == len(logits) == len(means) == len(squares):
                raise ValueError("the policy has other choices than this space")
            self.logits[key], self._means[key], self._squares[key] = logits, means, squares
        self._sum, self._weight = state["baseline"]


def softmax(values: Sequence[float]) -> list[float]:
    highest = max(values)
    powers = [math.exp(value - highest) for value in values]
    total = math.fsum(powers)
    return [power / total for power in powers]

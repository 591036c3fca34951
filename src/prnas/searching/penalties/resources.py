"""The penalty of SNAS: what the candidates that a pass mixes cost.

Xie, Zheng, Liu, Lin: SNAS: Stochastic Neural Architecture Search. ICLR 2019.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from prnas.config.search import SearchConfig
from prnas.nets.supernet import Supernet
from prnas.searching.penalties.base import Penalty
from prnas.space.layer_size import Pixels, halved
from prnas.space.operations import Operation, Zero
from prnas.space.shape import Role

if TYPE_CHECKING:
    from prnas.searching.search import Search

# How much each kind of cost counts, in the code that the authors published.
SCALE, OF_PARAMETERS, OF_MACS, OF_ACCESSES = 0.43, 2.0, 1 / 4000, 1 / 100


class ResourcePenalty(Penalty):
    """The costs of all candidates, weighed as the pass under way mixes them.

    Summed over the edges of a cell, the mean over the cells of a role, and summed over roles.
    """

    def __init__(self, search: "Search") -> None:
        super().__init__(search)
        self._supernet: Supernet | None = None
        self._pools: object = None
        self._costs: dict[Role, list[Tensor]] = {}

    @staticmethod
    def wanted(config: SearchConfig) -> bool:
        return config.architecture.resource_penalty > 0

    def __call__(self) -> Tensor:
        supernet = self.search.state.supernet
        if self._supernet is not supernet or self._pools is not supernet.pools:
            _, height, width = self.search.data.shape
            self._supernet, self._pools = supernet, supernet.pools
            self._costs = costs(supernet, (height, width))
        terms = [
            (mixing * cost).sum()
            for role, edges in supernet.mixed.items()
            for mixing, cost in zip(edges, self._costs[role], strict=True)
        ]
        return self.search.config.architecture.resource_penalty * torch.stack(terms).sum()


def costs(supernet: Supernet, pixels: Pixels) -> dict[Role, list[Tensor]]:
    """The cost of each candidate of each edge, on average over the cells of its role."""
    totals: dict[Role, list[list[float]]] = {}
    numbers: dict[Role, int] = {}
    for cell in supernet.search_cells:
        pixels = halved(pixels) if cell.plan.after_block else pixels
        inner = halved(pixels) if cell.plan.reduces else pixels
        role, channels = cell.plan.role, cell.plan.channels
        own = [
            [
                cost(
                    op, channels, inner if cell.stride(source) == 1 else pixels, cell.stride(source)
                )
                for op in edge.candidates
            ]
            for (_, source), edge in zip(cell.pools.positions, cell.pools.edges, strict=True)
        ]
        before = totals.get(role, [[0.0] * len(edge) for edge in own])
        totals[role] = [
            [a + b for a, b in zip(*edges, strict=True)] for edges in zip(before, own, strict=True)
        ]
        numbers[role] = numbers.get(role, 0) + 1
        pixels = inner
    like = supernet.classifier.weight
    return {
        role: [like.new_tensor([value / numbers[role] for value in edge]) for edge in edges]
        for role, edges in totals.items()
    }


def cost(op: Operation, channels: int, read: Pixels, stride: int) -> float:
    """The cost of an operation that reads images of so many pixels.

    Memory accesses are the values that it reads and makes, and its parameters; what lies between
    the layers of an operation is not counted.
    """
    if isinstance(op, Zero):
        return 0.0
    made = halved(read) if stride == 2 else read
    size = op.size(channels, read, stride)
    accesses = channels * (read[0] * read[1] + made[0] * made[1]) + size.parameters
    return SCALE * (OF_PARAMETERS * size.parameters + OF_MACS * size.macs + OF_ACCESSES * accesses)

"""The expected cost of the final network, as a part of the architecture weights' loss.

By its linear form it is added, by its log-power form it multiplies the cross entropy; both are in
the code of ProxylessNAS (Cai, Zhu and Han, ICLR 2019).
"""

from collections.abc import Mapping, Sequence
from math import log
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from prnas.config.search import SearchConfig
from prnas.searching.penalties.base import Penalty
from prnas.space.costs import CostKind, Costs
from prnas.space.pools import Pools
from prnas.space.shape import CellShape, Role

if TYPE_CHECKING:
    from prnas.searching.search import Search

MICROSECOND = 1_000  # nanoseconds; logarithms of latencies are of these


class ExpectedCost(Penalty):
    """The expected cost of the final network, by the pass's mixing weights of candidates."""

    def __init__(self, search: "Search") -> None:
        super().__init__(search)
        settings, costs = search.config.architecture.cost, search.costs
        assert settings is not None
        assert costs is not None
        reference = settings.amount(search.config.final.limits)
        assert reference is not None
        self.settings, self.costs, self.reference = settings, costs, reference
        self._pools: Pools | None = None
        self._shares: dict[Role, list[Tensor]] = {}

    @staticmethod
    def wanted(config: SearchConfig) -> bool:
        return config.architecture.cost is not None

    def __call__(self) -> Tensor | None:
        if self.settings.form != "linear":
            return None
        return self.settings.weight * (self.share() - 1)

    def factor(self) -> Tensor | None:
        if self.settings.form != "log-power":
            return None
        unit = MICROSECOND if self.settings.of == "latency" else 1
        return log_power(self.share(), self.reference / unit, self.settings.weight)

    def share(self) -> Tensor:
        """The expected cost in units of the reference, what is around the cells included."""
        supernet = self.search.state.supernet
        if self._pools is not supernet.pools:
            self._pools = supernet.pools
            like = supernet.classifier.weight
            shares = cost_shares(self.costs, supernet.pools, self.settings.of, self.reference)
            self._shares = {
                role: [like.new_tensor(edge) for edge in edges] for role, edges in shares.items()
            }
        around = self.costs.around.of(self.settings.of) / self.reference
        return around + expected(supernet.mixed, self._shares, supernet.pools.shape)


def cost_shares(
    costs: Costs, pools: Pools, kind: CostKind, reference: int
) -> dict[Role, list[list[float]]]:
    """For each edge of each cell, what its candidates cost, in units of the reference."""
    return {
        role: [
            [costs.of(role, source, op).of(kind) / reference for op in pool.candidates]
            for (_, source), pool in zip(
                pools.cell(role).positions, pools.cell(role).edges, strict=True
            )
        ]
        for role in pools.roles
    }


def expected(
    mixing: Mapping[Role, Sequence[Tensor]],
    costs: Mapping[Role, Sequence[Tensor]],
    shape: CellShape,
) -> Tensor:
    """The mean cost of cells drawn as candidates are mixed, with as many edges as nodes keep.

    A node's mixing weights count by their share of all of them, on all its edges. So with a softmax
    each edge is kept with the same probability; with weights on edges too, by these.
    """
    terms: list[Tensor] = []
    for role, edges in mixing.items():
        first = 0
        state = shape.inputs
        while first < len(edges):
            own = slice(first, first + state)
            mass = torch.stack([edge.sum() for edge in edges[own]]).sum()
            cost = torch.stack(
                [(edge * of).sum() for edge, of in zip(edges[own], costs[role][own], strict=True)]
            ).sum()
            terms.append(shape.num_edges(state) * cost / mass)
            first, state = first + state, state + 1
    return torch.stack(terms).sum()


def log_power(share: Tensor, reference: float, power: float) -> Tensor:
    """(log expected / log reference) to a power, where the expected is a share of the reference."""
    return (1 + share.log() / log(reference)).clamp_min(1e-3) ** power

"""The worth of candidates by paths: how much better cells with one are than cells with another.

Paths are drawn in fair groups, and those of a group are scored on the same images. Within a group
each candidate of an edge meets other candidates on the other edges, so its mean over groups is its
main effect. A group is one sample, the same one for all candidates: differences are paired, and
their standard error counts both the images and the cells that were drawn. Where there are paths
enough, what other edges' candidates add to a path's loss is taken off by least squares.
"""

import math
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from prnas.config.architecture import SAMPLING
from prnas.nets.paths import Omitted
from prnas.nets.removal import pass_costs
from prnas.searching.budget import TRAINING, cycle_work
from prnas.searching.measuring import Measuring
from prnas.space.operations import Operation
from prnas.space.paths import Path, path_groups
from prnas.space.pools import Pools
from prnas.space.shape import Role
from prnas.space.worth import EdgeWorth, one_shot

if TYPE_CHECKING:
    from prnas.searching.search import Search

LEAST_GROUPS, MOST_GROUPS = 8, 400
Scored = tuple[Path, Omitted | None]


class PathJudge:
    """Draws and scores the paths of a cycle's end, as many as its share of the work allows."""

    def __init__(self, search: "Search", pools: Pools, last: bool) -> None:
        self.search, self.pools = search, pools
        self.omits = last and pools.shape.reads == "two"  # then a node's inputs are chosen too
        self.batch = min(search.config.validation.batch, len(search.indices["architecture"]))
        self.num_groups = 0
        self.share = 0.0
        # For each edge and group, by how much the loss rises when a path loses the edge.
        self.rises: dict[Omitted, list[float]] = {}

    @property
    def _edges(self) -> list[Omitted]:
        return [(role, i) for role in self.pools.roles for i in range(self._number(role))]

    def _number(self, role: Role) -> int:
        return len(self.pools.cell(role).edges)

    def _plan(self) -> None:
        """Choose the number of groups."""
        search = self.search
        config, number = search.config, search.state.position.cycle
        cycle = config.schedule.cycles[number]
        _, height, width = search.data.shape
        overhead = pass_costs(search.state.supernet, (height, width)).overhead
        size = max(len(self.pools.cell(role).edges[i].candidates) for role, i in self._edges)
        if config.architecture.step in SAMPLING:
            batch = config.batch.min
            steps = search.epoch_images * cycle.epochs / batch
            work = steps * TRAINING * (batch + overhead) / size
        else:
            half = len(search.indices["architecture"])
            work = cycle_work(config, number, search.epoch_images, half)
        paths = size + (len(self._edges) + 1 if self.omits else 0)
        cost = paths * (self.batch + overhead) / size
        affordable = int(config.evidence.share * work / cost)
        self.num_groups = min(max(affordable, LEAST_GROUPS), MOST_GROUPS)
        self.share = self.num_groups * cost / work

    def worths(self, measuring: Measuring) -> dict[Role, list[EdgeWorth]]:
        """The worth of every candidate: by how much a path's loss falls if it has this one."""
        self._plan()
        seed, number = self.search.config.seed, self.search.state.position.cycle
        drawn = islice(path_groups(self.pools, seed, f"judge/{number}"), self.num_groups)
        groups: list[list[Scored]] = []
        for paths in drawn:
            group: list[Scored] = [(path, None) for path in paths]
            if self.omits:  # the first path again, without one edge after the other
                group += [(paths[0], edge) for edge in self._edges]
            groups.append(group)
        losses = measuring.path_losses(groups, self.batch)
        by_role: dict[Role, list[EdgeWorth]] = {role: [] for role in self.pools.roles}
        contrasts = self._contrasts(groups, losses)
        for role, edge in self._edges:
            worth = one_shot(contrasts[role, edge])
            if self.omits:
                self.rises[role, edge] = self._rises(groups, losses, (role, edge))
                rise = fmean(self.rises[role, edge])
                strengths = tuple(rise + strength for strength in worth.strengths)
                worth = EdgeWorth(worth.samples, worth.order, strengths)
            by_role[role].append(worth)
        return by_role

    def _contrasts(
        self, groups: list[list[Scored]], losses: list[list[float]]
    ) -> dict[Omitted, list[tuple[float, ...]]]:
        """Distances of paths' losses below the mean, for each edge, candidate and group."""
        number = max(len(self._candidates(edge)) for edge in self._edges)  # paths of a group
        paths = [[path for path, omitted in group if omitted is None] for group in groups]
        rows = torch.tensor([loss[:number] for loss in losses], dtype=torch.float64)
        rows = rows - rows.mean(1, keepdim=True)
        # Whether a path has a candidate (1 or 0), less its mean in the path's group.
        columns = [
            torch.tensor(
                [[path[role][edge] == index for path in group] for group in paths],
                dtype=torch.float64,
            )
            for role, edge in self._edges
            for index in range(len(self._candidates((role, edge))))
        ]
        design = torch.stack(columns, dim=2)
        occurrences = design / design.sum(1, keepdim=True)
        design = design - design.mean(1, keepdim=True)
        effects, rest = _additive(design.flatten(0, 1), rows.flatten())
        samples = effects + torch.einsum("gpc,gp->gc", occurrences, rest.view_as(rows))
        by_edge: dict[Omitted, list[tuple[float, ...]]] = {}
        first = 0
        for edge in self._edges:
            last = first + len(self._candidates(edge))
            own = samples[:, first:last]
            falls = (own.mean(1, keepdim=True) - own).T.tolist()
            by_edge[edge], first = [tuple(fall) for fall in falls], last
        return by_edge

    def _candidates(self, edge: Omitted) -> tuple[Operation, ...]:
        return self.pools.cell(edge[0]).edges[edge[1]].candidates

    def _rises(
        self, groups: list[list[Scored]], losses: list[list[float]], omitted: Omitted
    ) -> list[float]:
        """The rise of the loss of each group's first path without an edge."""
        return [
            loss - group_losses[0]
            for group, group_losses in zip(groups, losses, strict=True)
            for (_, left_out), loss in zip(group, group_losses, strict=True)
            if left_out == omitted
        ]


def _additive(design: Tensor, losses: Tensor) -> tuple[Tensor, Tensor]:
    """The effects of candidates on the losses of paths, if they add up, and what these leave over.

    What is left over is scaled up for the effects that were fitted to it. With too few paths to
    fit them, all effects are 0 and everything is left over.
    """
    rank = int(torch.linalg.matrix_rank(design))
    freedom = len(losses) - rank
    if freedom < rank:
        return design.new_zeros(design.shape[1]), losses
    effects = torch.linalg.lstsq(design, losses[:, None], driver="gelsd").solution[:, 0]
    return effects, (losses - design @ effects) * math.sqrt(len(losses) / freedom)

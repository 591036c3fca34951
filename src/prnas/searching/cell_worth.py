"""The worth of candidates by cells, where a node reads two of its inputs.

A path with a candidate on every edge adds up five inputs at the last node, where the final cell has
two: it says little about that cell. So whole cells are drawn, such as a search could end with, and
scored in groups, those of a group on the same images. The effect of having a candidate on an edge
is fitted to all losses by least squares, as if effects added up. It tells candidates of an edge
apart, and the inputs of a node, of which a cell has some and not others. A group is one sample: its
part in the fit, so that errors count both the images and the cells that were drawn.

One edge of fourteen changes a cell's loss by little more than its error. But an operation is on
many edges, so what these say together counts too: the effect on an edge is drawn towards the sum of
one for the edge and one for the operation, the more the less its own departure rises above noise.
"""

from collections.abc import Sequence
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from prnas.nets.cell_paths import active_of_cells
from prnas.nets.paths import Omitted
from prnas.nets.removal import pass_costs
from prnas.searchers.cells import CellSpace
from prnas.searching.budget import TRAINING
from prnas.searching.measuring import Measuring
from prnas.space.genotype import Genotype
from prnas.space.operations import Zero
from prnas.space.pools import Pools
from prnas.space.shape import Role
from prnas.space.worth import EdgeWorth

if TYPE_CHECKING:
    from prnas.searching.search import Search

GROUP = 8  # cells that are scored on the same images
CELLS_PER_EFFECT = 3  # the least number of cells, for each effect that is fitted
MOST_GROUPS = 1000
# A candidate, and whether each cell (columns) of each group (rows) has it.
Key = tuple[Role, int, int]


class CellJudge:
    """Draws and scores the cells of a cycle's end, as many as its share of the work allows."""

    def __init__(self, search: "Search", pools: Pools) -> None:
        self.search, self.pools = search, pools
        self.batch = min(search.config.validation.batch, len(search.indices["architecture"]))
        self.num_groups = 0
        self.share = 0.0
        # For each edge and group, by how much a cell's loss falls if its node reads this edge.
        self.rises: dict[Omitted, list[float]] = {}

    @property
    def _edges(self) -> list[Omitted]:
        return [
            (role, i) for role in self.pools.roles for i in range(len(self.pools.cell(role).edges))
        ]

    @property
    def _effects(self) -> list[Key]:
        """Every candidate that a cell can have."""
        return [
            (role, edge, index)
            for role, edge in self._edges
            for index, op in enumerate(self.pools.cell(role).edges[edge].candidates)
            if not isinstance(op, Zero)
        ]

    def _plan(self) -> None:
        """Choose the number of groups."""
        search = self.search
        config, cycle = search.config, search.config.schedule.cycles[search.state.position.cycle]
        _, height, width = search.data.shape
        overhead = pass_costs(search.state.supernet, (height, width)).overhead
        steps = search.epoch_images * cycle.epochs / config.batch.min
        work = steps * TRAINING * (config.batch.min + overhead)
        cost = GROUP * (self.batch + overhead)
        least = -(-CELLS_PER_EFFECT * len(self._effects) // GROUP)
        affordable = min(int(config.evidence.share * work / cost), MOST_GROUPS)
        self.num_groups = max(affordable, least)
        self.share = self.num_groups * cost / work

    def _drawn(self) -> list[list[Genotype]]:
        search = self.search
        space = CellSpace.of_pools(self.pools, search.config.network.output)
        seed, cycle = search.config.seed, search.state.position.cycle
        return [
            [space.draw(Random(f"{seed}/judge/{cycle}/{number * GROUP + k}")) for k in range(GROUP)]
            for number in range(self.num_groups)
        ]

    def worths(self, measuring: Measuring) -> dict[Role, list[EdgeWorth]]:
        """The worth of every candidate: by how much a cell's loss falls if it has this one."""
        self._plan()
        groups = self._drawn()
        losses = torch.tensor(measuring.cell_losses(groups, self.batch), dtype=torch.float64)
        measured = dict(
            zip(self._effects, (-effect_samples(self._design(groups), losses)).T, strict=True)
        )
        by_role: dict[Role, list[EdgeWorth]] = {}
        for role in self.pools.roles:
            cell = self.pools.cell(role)
            samples = self._pooled({key: row for key, row in measured.items() if key[0] == role})
            means = {
                i: torch.stack([row for key, row in samples.items() if key[:2] == (role, i)]).mean(
                    0
                )
                for i in range(len(cell.edges))
            }
            by_role[role] = []
            for i, (state, _) in enumerate(cell.positions):
                others = [means[j] for j, (own, _) in enumerate(cell.positions) if own == state]
                self.rises[role, i] = (means[i] - torch.stack(others).mean(0)).tolist()
                contrasts = {
                    key[2]: (row - means[i]).tolist()
                    for key, row in samples.items()
                    if key[:2] == (role, i)
                }
                by_role[role].append(
                    _edge_worth(contrasts, len(cell.edges[i].candidates), self.rises[role, i])
                )
        return by_role

    def _pooled(self, samples: dict[Key, Tensor]) -> dict[Key, Tensor]:
        """The samples of a role's candidates, each operation's pooled over its edges."""
        operations = [
            self.pools.cell(role).edges[edge].candidates[index] for role, edge, index in samples
        ]
        order = {op: number for number, op in enumerate(dict.fromkeys(operations))}
        rows = pooled(
            torch.stack(list(samples.values()), 1),
            [edge for _, edge, _ in samples],
            [order[op] for op in operations],
        )
        return dict(zip(samples, rows.T, strict=True))

    def _design(self, groups: Sequence[Sequence[Genotype]]) -> Tensor:
        """For each group, cell and candidate, 1 if the cell has the candidate, else 0."""
        column = {key: number for number, key in enumerate(self._effects)}
        design = torch.zeros(len(groups), GROUP, len(column), dtype=torch.float64)
        for row, group in zip(design, groups, strict=True):
            for own, genotype in zip(row, group, strict=True):
                for role, active in active_of_cells(self.pools, genotype).items():
                    for edge, indices in enumerate(active):
                        for index in indices:
                            own[column[role, edge, index]] = 1
        return design


def effect_samples(design: Tensor, losses: Tensor) -> Tensor:
    """What each group of cells (rows) says of each effect; their mean is the fit to all of them.

    `design` has a row of zeros and ones for each cell of each group, `losses` a number. Effects are
    fitted by least squares to the differences within groups. Those which the cells cannot tell
    apart share what they explain, so that only differences mean something. The spread of a
    column over groups gives the error of its mean, also where the losses of a group hang together.
    """
    design = design - design.mean(1, keepdim=True)
    losses = losses - losses.mean(1, keepdim=True)
    rows = design.flatten(0, 1)
    inverse = torch.linalg.pinv(rows.T @ rows, hermitian=True, rtol=1e-9)
    effects = inverse @ (rows.T @ losses.flatten())
    number, rank = len(rows), int(torch.linalg.matrix_rank(rows))
    rest = losses - design @ effects
    rest = rest * (number / max(number - rank - len(design), 1)) ** 0.5
    own = torch.einsum("gkp,gk->gp", design, rest) @ inverse
    return effects + len(design) * (own - own.mean(0))


def pooled(samples: Tensor, edges: Sequence[int], operations: Sequence[int]) -> Tensor:
    """Samples of effects (columns), drawn towards the sum of an edge's and an operation's effect.

    That sum is fitted to all columns by least squares. What a column departs from it stays by the
    share that noise does not explain, estimated from all departures (as James and Stein shrink
    means): all of it where nothing is noise, nothing where noise explains everything.
    """
    number, columns = len(samples), torch.arange(len(edges))
    parts = torch.zeros(len(edges), max(edges) + 1 + max(operations) + 1, dtype=samples.dtype)
    parts[columns, torch.tensor(edges)] = 1
    parts[columns, max(edges) + 1 + torch.tensor(operations)] = 1
    sums = samples @ (parts @ torch.linalg.pinv(parts)).T
    departures = samples - sums
    spread = departures.mean(0).square().sum()
    noise = departures.var(0).sum() / number if number > 1 else spread
    share = (1 - noise / spread).clamp(min=0) if spread > 0 else torch.zeros(())
    return sums + share * departures


def _edge_worth(contrasts: dict[int, list[float]], size: int, rises: Sequence[float]) -> EdgeWorth:
    """The worth of an edge's candidates; those that no cell can have are as bad as the worst."""
    means = {index: fmean(sample) for index, sample in contrasts.items()}
    ranked = sorted(means, key=lambda index: (-means[index], index))
    order = (*ranked, *(index for index in range(size) if index not in means))
    samples = tuple(
        tuple(contrasts[index if index in means else ranked[-1]]) for index in range(size)
    )
    rise = fmean(rises)
    return EdgeWorth(samples, order, tuple(rise + fmean(sample) for sample in samples))

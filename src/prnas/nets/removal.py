"""The scores of a supernet without some of its candidates, image by image.

Many sets of candidates to leave out are tried on the same images, and what they share is computed
once: the stem, every cell before the first that differs, and in that one every node before the
first that differs.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from prnas.nets.kernels.batch_norm import FrozenStatistics
from prnas.nets.search_cell import ActiveCell, StateFeatures
from prnas.nets.supernet import Supernet
from prnas.space.layer_size import Pixels, halved
from prnas.space.shape import Role

# What the time that a candidate takes in any case is worth, as was measured on a CPU.
CANDIDATE_MACS = 7e5


@dataclass(frozen=True, slots=True)
class CandidateIndex:
    """A candidate by its role, its edge and its index among the candidates there."""

    role: Role
    edge: int
    index: int


@dataclass(frozen=True, slots=True)
class ImageScores:
    """Losses and hits for each set of removed candidates (rows) and each image (columns)."""

    loss: Tensor  # cross entropy
    correct: Tensor  # whether the prediction is right


@torch.no_grad()
def scores_without(
    supernet: Supernet,
    images: Tensor,
    labels: Tensor,
    removals: Sequence[Collection[CandidateIndex]],
    *,
    renormalise: bool = False,
    statistics: Literal["batch", "running"] = "batch",
) -> ImageScores:
    """The scores of `images` with the candidates of each of `removals` left out.

    With `renormalise`, the mixing weights of the others on an edge grow to the same sum; an edge
    without any others contributes nothing. Batch normalisation uses the statistics of these images
    or the running ones. Not a bit of the supernet's state changes.
    """
    loss: list[Tensor] = []
    correct: list[Tensor] = []
    with undisturbed(supernet, training=statistics == "batch"):
        trunk = Trunk(supernet, images, supernet.mixing())
        for removed in removals:
            logits = trunk.logits_without(frozenset(removed), renormalise)
            loss.append(F.cross_entropy(logits, labels, reduction="none"))
            correct.append(logits.argmax(1) == labels)
    return ImageScores(torch.stack(loss), torch.stack(correct))


class Trunk:
    """A pass through the whole supernet, from which passes without some candidates branch off."""

    def __init__(
        self, supernet: Supernet, images: Tensor, mixing: Mapping[Role, Sequence[Tensor]]
    ) -> None:
        self.supernet, self.mixing = supernet, mixing
        # By role, the first cell of it: its index, its input `last`, and all its states.
        self.first: dict[Role, tuple[int, Tensor, list[StateFeatures]]] = {}
        images = images.contiguous(memory_format=torch.channels_last)
        before_last, last = supernet.stem(images)
        for index, cell in enumerate(supernet.search_cells):
            before_last, last = supernet.entering(index, before_last, last)
            states = cell.inputs(before_last, last, None)
            cell.add_nodes(states, self.mixing[cell.plan.role], None, None)
            self.first.setdefault(cell.plan.role, (index, last, states))
            before_last, last = last, cell.joined(states)
        self.logits = supernet.classified(last)

    def logits_without(self, removed: frozenset[CandidateIndex], renormalise: bool) -> Tensor:
        removed = frozenset(candidate for candidate in removed if candidate.role in self.first)
        if not removed:
            return self.logits
        cells = self.supernet.search_cells
        mixing, active = self._remaining(removed, renormalise)
        start, last, shared = min(
            (self.first[candidate.role] for candidate in removed), key=lambda first: first[0]
        )
        cell = cells[start]
        positions = cell.pools.positions
        node = min(
            positions[candidate.edge][0]
            for candidate in removed
            if candidate.role == cell.plan.role
        )
        states = shared[:node]
        cell.add_nodes(states, mixing[cell.plan.role], None, active[cell.plan.role])
        before_last, last = last, cell.joined(states)
        for index, cell in enumerate(cells[start + 1 :], start + 1):
            before_last, last = self.supernet.entering(index, before_last, last)
            role = cell.plan.role
            before_last, last = last, cell(before_last, last, mixing[role], None, active[role])
        return self.supernet.classified(last)

    def _remaining(
        self, removed: frozenset[CandidateIndex], renormalise: bool
    ) -> tuple[dict[Role, list[Tensor]], dict[Role, ActiveCell]]:
        mixing: dict[Role, list[Tensor]] = {
            role: list(weights) for role, weights in self.mixing.items()
        }
        active: dict[Role, ActiveCell] = {}
        for role in mixing:
            remaining: list[tuple[int, ...]] = []
            for edge, weights in enumerate(self.mixing[role]):
                indices = [
                    index
                    for index in range(len(weights))
                    if CandidateIndex(role, edge, index) not in removed
                ]
                if renormalise and indices and len(indices) < len(weights):
                    rest = weights[indices].sum()  # 0 if all weight was on those that are left out
                    mixing[role][edge] = weights * torch.where(rest > 0, weights.sum() / rest, 1)
                remaining.append(tuple(indices))
            active[role] = tuple(remaining)
        return mixing, active


@dataclass(frozen=True, slots=True)
class PassCosts:
    """The costs of passes, in units of a whole pass for one image, by multiply-accumulates.

    `shares`: for each edge, a pass without some of its candidates. `overhead`: what a whole pass
    costs on top of its images, since each candidate takes some time however few they are.
    """

    shares: dict[Role, list[float]]
    overhead: float


def pass_costs(supernet: Supernet, pixels: Pixels) -> PassCosts:
    """The costs of passes for images of that size."""
    costs: list[dict[int, int]] = []  # multiply-accumulates of each cell, by node
    first: dict[Role, int] = {}
    candidates = 0
    for index, cell in enumerate(supernet.search_cells):
        first.setdefault(cell.plan.role, index)
        pixels = halved(pixels) if cell.plan.after_block else pixels
        inner = halved(pixels) if cell.plan.reduces else pixels
        costs.append({})
        for (state, source), edge in zip(cell.pools.positions, cell.pools.edges, strict=True):
            stride, channels = cell.stride(source), cell.plan.channels
            macs = inner[0] * inner[1] * channels  # what even a skip does
            for op in edge.candidates:
                macs += op.size(channels, pixels if stride == 2 else inner, stride).macs
            costs[-1][state] = costs[-1].get(state, 0) + macs
            candidates += len(edge.candidates)
        pixels = inner
    cells = [sum(cost.values()) for cost in costs]
    shares: dict[Role, list[float]] = {}
    for role, index in first.items():
        nodes = [
            sum(macs for node, macs in costs[index].items() if node >= state)
            for state, _ in supernet.pools.cell(role).positions
        ]
        shares[role] = [(own + sum(cells[index + 1 :])) / sum(cells) for own in nodes]
    return PassCosts(shares, CANDIDATE_MACS * candidates / sum(cells))


@contextmanager
def undisturbed(supernet: Supernet, training: bool) -> Iterator[None]:
    """Within it, the supernet computes without any randomness, and leaves its state alone."""
    modes = [(module, module.training) for module in supernet.modules()]
    dropout = supernet.search_cells[0].skip_dropout
    supernet.train(training)
    supernet.relaxation.eval()
    supernet.set_skip_dropout(0.0)
    try:
        with FrozenStatistics([supernet]):
            yield
    finally:
        supernet.set_skip_dropout(dropout)
        for module, mode in modes:
            module.training = mode

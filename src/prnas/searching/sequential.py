"""Edges that become discrete one after the other, while the rest of the supernet trains on.

Wang, Cheng, Chen, Tang, Hsieh: Rethinking Architecture Selection in Differentiable NAS. ICLR 2021.
"""

from collections.abc import Mapping
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch

from prnas.nets.removal import CandidateIndex
from prnas.runs.preparation import seed_for, torch_generator
from prnas.searching.measuring import Measuring, Without
from prnas.space.operations import Zero
from prnas.space.shape import ROLES, Role

if TYPE_CHECKING:
    from prnas.searching.search import Search


class SequentialSelection:
    """Decides the edges of the last cycle's cells, in an order that the seed draws.

    An edge keeps the candidate without which the loss rises most, on images of the architecture
    half; from then on it is computed alone, with weight 1, and the others adapt to it.
    """

    def __init__(self, search: "Search", saved: Mapping[str, Any] | None) -> None:
        self.search = search
        supernet = search.state.supernet
        for role in ROLES if saved else ():
            for edge, index in (saved or {}).get(role, {}).items():
                candidates = supernet.pools.cell(role).edges[int(edge)].candidates
                if not 0 <= index < len(candidates):
                    raise ValueError(f"edge {edge} has {len(candidates)} candidates, got {index}")
                supernet.decided[role, int(edge)] = index

    def end_epoch(self) -> None:
        """Decide the edges that are due."""
        state, every = self.search.state, self.search.config.architecture.sequential
        last = state.position.cycle == len(self.search.config.schedule.cycles) - 1
        if not every or not last:
            return
        pools, epochs = state.supernet.pools, state.cycle.epochs
        sizes = {role: len(pools.cell(role).edges) for role in pools.roles}
        for index in range(max(sizes.values())):
            due = due_after(index, max(sizes.values()), epochs, every)
            done = any(
                (role, self._order(role, sizes[role])[index]) in state.supernet.decided
                for role in pools.roles
                if index < sizes[role]
            )
            if due <= state.position.epoch + 1 and not done:
                self._decide(
                    {
                        role: self._order(role, sizes[role])[index]
                        for role in pools.roles
                        if index < sizes[role]
                    }
                )

    def _order(self, role: Role, number: int) -> list[int]:
        edges = list(range(number))
        Random(seed_for(self.search.config.seed, "sequential", role)).shuffle(edges)
        return edges

    def _decide(self, edges: Mapping[Role, int]) -> None:
        """One edge of each cell, each measured before the others are decided."""
        search, supernet = self.search, self.search.state.supernet
        supernet.progress = search.progress
        half = search.indices["architecture"]
        generator = torch_generator(search.config.seed, "sequential")
        order = half[torch.randperm(len(half), generator=generator)]
        measuring = Measuring(search, order, min(search.config.evidence.images, len(half)), 0)
        chosen: dict[Role, int] = {}
        for role, edge in edges.items():
            cell = supernet.pools.cell(role)
            candidates = cell.edges[edge].candidates
            choice = [
                index
                for index, op in enumerate(candidates)
                if not (isinstance(op, Zero) and cell.shape.reads == "two")
            ] or [0]
            without = {index: _without(role, edge, index) for index in choice}
            losses = measuring.losses(without.values())
            chosen[role] = max(choice, key=lambda index: (fmean(losses[without[index]]), -index))
            source, state = cell.positions[edge][1], cell.positions[edge][0]
            label = candidates[chosen[role]].label
            search.emit(
                "on_message",
                f"edge {source}→{state} of the {role} cell keeps '{label}'",
            )
        for role, index in chosen.items():
            supernet.decided[role, edges[role]] = index

    def state(self) -> dict[str, Any]:
        """Plain data for a checkpoint; nothing where nothing is decided."""
        decided: dict[str, dict[str, int]] = {}
        for (role, edge), index in self.search.state.supernet.decided.items():
            decided.setdefault(role, {})[str(edge)] = index
        return {"decided": decided} if decided else {}


def _without(role: Role, edge: int, index: int) -> Without:
    return frozenset({CandidateIndex(role, edge, index)})


def due_after(index: int, number: int, epochs: int, over: int) -> int:
    """After how many of a cycle's epochs an edge is decided, by its index among `number` edges.

    Evenly over the last `over` epochs, so that the last one too has some left to adapt to.
    """
    over = min(over, epochs)
    return max(epochs - over + index * over // number, 1)

"""Successive halving: many cells a little, the better ones more (Jamieson and Talwalkar, 2016)."""

from collections.abc import Mapping
from random import Random
from typing import Any, ClassVar

from prnas.searchers.base import Evaluated, Proposal, Searcher
from prnas.searchers.cells import CellSpace
from prnas.space.genotype import Genotype


class SuccessiveHalving(Searcher):
    """Rounds of rungs: on each rung all cells are scored, and the best `1 / factor` rise.

    The lowest rung has `factor ** (rungs - 1)` random cells and scores them with the share
    `factor ** (1 - rungs)` of a whole evaluation; on the highest, one cell gets all of it. So every
    rung of a round costs the same: one whole evaluation. What was scored on a higher rung is better
    than anything that was not. A round is followed by another.
    """

    name: ClassVar[str] = "halving"

    def __init__(
        self, space: CellSpace, generator: Random, factor: int = 3, rungs: int = 3
    ) -> None:
        super().__init__(space, generator)
        if factor < 2 or rungs < 1:
            raise ValueError(f"factor must be at least 2 and rungs 1, got {factor} and {rungs}")
        self.factor, self.rungs = factor, rungs
        self.rung = 0  # the present one, from 0, the lowest
        self._waiting: list[tuple[Genotype, int | None]] = []  # with where they rose from
        self._scored: list[Evaluated] = []

    @property
    def share(self) -> float:
        """The share of a whole evaluation that each cell of the present rung gets."""
        return float(self.factor) ** (self.rung + 1 - self.rungs)

    @property
    def num_settled(self) -> int:
        return len(self._waiting) or self.factor ** (self.rungs - 1)

    def _propose(self) -> Proposal:
        if not self._waiting:
            number = self.factor ** (self.rungs - 1)
            self._waiting = [(self.space.draw(self.generator), None) for _ in range(number)]
        genotype, parent = self._waiting[0]
        return Proposal(genotype, parent, self.share)

    def _learn(self, evaluated: Evaluated, proposal: Proposal) -> None:
        self._waiting.pop(0)
        self._scored.append(evaluated)
        if self._waiting:
            return
        ranked = sorted(self._scored, key=lambda cell: -cell.score)  # Stable: the first of equals.
        self._scored = []
        if self.rung + 1 == self.rungs:
            self.rung = 0
            return
        self.rung += 1
        risen = ranked[: len(ranked) // self.factor]
        self._waiting = [(cell.genotype, cell.number) for cell in risen]

    def _own_state(self) -> dict[str, Any]:
        return {
            "rung": self.rung,
            "waiting": [[genotype.to_json(), parent] for genotype, parent in self._waiting],
            "scored": [cell.to_json() for cell in self._scored],
        }

    def _load_own(self, state: Mapping[str, Any]) -> None:
        self.rung = int(state["rung"])
        self._waiting = [
            (Genotype.from_json(genotype), parent) for genotype, parent in state["waiting"]
        ]
        self._scored = [Evaluated.from_json(cell) for cell in state["scored"]]

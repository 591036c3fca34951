"""Local search (White, Nolen and Savani, 2020): ever better neighbours, until there are none."""

from collections.abc import Mapping
from random import Random
from typing import Any, ClassVar, Literal

from prnas.searchers.base import Evaluated, Proposal, Searcher
from prnas.searchers.cells import CellSpace
from prnas.space.genotype import Genotype

Move = Literal["best", "first"]
_TRIES = 1000  # draws of a start that was not scored yet, before one is taken that was


class LocalSearch(Searcher):
    """Moves from a random cell to its best neighbour, as long as that is better; then from another.

    Neighbours are all cells that a single edit leads to, in a random order. With `move` "first", it
    moves to the first that is better, without looking at the others. No cell is asked for twice,
    unless all that a space has are known.
    """

    name: ClassVar[str] = "local-search"

    def __init__(self, space: CellSpace, generator: Random, move: Move = "best") -> None:
        super().__init__(space, generator)
        self.move: Move = move
        self.evaluated_cells: dict[Genotype, Evaluated] = {}
        self.here: Evaluated | None = None  # The present cell.
        self.num_optima = 0  # The number of local optima that it has left.
        # The neighbours that are still to be looked at, the next last; and the best so far.
        self._left: list[Genotype] = []
        self._best_neighbour: Evaluated | None = None

    @property
    def num_settled(self) -> int:
        if self.move == "first" or self.here is None:
            return 1
        unknown = sum(neighbour not in self.evaluated_cells for neighbour in self._left)
        return max(unknown + (self._proposal is not None), 1)

    def _propose(self) -> Proposal:
        while self.here is not None:
            while self._left:
                neighbour = self._left.pop()
                if neighbour not in self.evaluated_cells:
                    return Proposal(neighbour, self.here.number)
                if self._look_at(self.evaluated_cells[neighbour]):
                    break
            else:
                self._move()
        return Proposal(self._draw_start())

    def _draw_start(self) -> Genotype:
        for _ in range(_TRIES):
            start = self.space.draw(self.generator)
            if start not in self.evaluated_cells:
                return start
        return self.space.draw(self.generator)

    def _look_at(self, neighbour: Evaluated) -> bool:
        """Remember the best neighbour; whether it was moved to at once."""
        assert self.here is not None
        best = self._best_neighbour or self.here
        if neighbour.score > best.score:
            self._best_neighbour = neighbour
            if self.move == "first":
                self._stand_at(neighbour)
                return True
        return False

    def _move(self) -> None:
        """All neighbours are known: go to the best if it is better, else leave this optimum."""
        if self._best_neighbour is None:
            self.num_optima += 1
            self.here = None
        else:
            self._stand_at(self._best_neighbour)

    def _stand_at(self, cell: Evaluated) -> None:
        self.here, self._best_neighbour = cell, None
        self._left = [edit.apply(cell.genotype) for edit in self.space.edits(cell.genotype)]
        self.generator.shuffle(self._left)

    def _learn(self, evaluated: Evaluated, proposal: Proposal) -> None:
        self.evaluated_cells.setdefault(evaluated.genotype, evaluated)
        if self.here is None:
            self._stand_at(evaluated)
        else:
            self._look_at(evaluated)

    def _own_state(self) -> dict[str, Any]:
        return {
            "known": [cell.to_json() for cell in self.evaluated_cells.values()],
            "here": self.here and self.here.to_json(),
            "optima": self.num_optima,
            "left": [genotype.to_json() for genotype in self._left],
            "best_neighbour": self._best_neighbour and self._best_neighbour.to_json(),
        }

    def _load_own(self, state: Mapping[str, Any]) -> None:
        cells = map(Evaluated.from_json, state["known"])
        self.evaluated_cells = {cell.genotype: cell for cell in cells}
        here, best = state["here"], state["best_neighbour"]
        self.here = None if here is None else Evaluated.from_json(here)
        self.num_optima = int(state["optima"])
        self._left = [Genotype.from_json(genotype) for genotype in state["left"]]
        self._best_neighbour = None if best is None else Evaluated.from_json(best)

"""Ageing evolution, as AmoebaNet was found by (Real et al., 2019)."""

from collections import deque
from collections.abc import Mapping
from random import Random
from typing import Any, ClassVar, Literal

from prnas.searchers.base import Evaluated, Proposal, Searcher
from prnas.searchers.cells import CellSpace, Mutation

Death = Literal["oldest", "worst"]


class Evolution(Searcher):
    """A population from which the oldest leaves with every child, however good it is.

    It begins with `population` random cells. Then, for every child, `sample` of them are drawn with
    replacement, and the best of these is mutated once. `death` of the worst instead of the oldest
    is the older, elitist kind.
    """

    name: ClassVar[str] = "evolution"

    def __init__(
        self,
        space: CellSpace,
        generator: Random,
        population: int = 10,
        sample: int = 3,
        mutation: Mutation = "edits",
        death: Death = "oldest",
    ) -> None:
        super().__init__(space, generator)
        self.size, self.sample = population, sample
        self.mutation: Mutation = mutation
        self.death: Death = death
        self.population: deque[Evaluated] = deque()  # the oldest first

    @property
    def num_settled(self) -> int:
        return max(self.size - len(self.population), 1)

    def _propose(self) -> Proposal:
        if len(self.population) < self.size:
            return Proposal(self.space.draw(self.generator))
        parent = self.draw_parent()
        child = self.space.mutated(parent.genotype, self.generator, self.mutation)
        return Proposal(child, parent.number)

    def draw_parent(self) -> Evaluated:
        """The best of a sample; of equals, the one that was drawn first."""
        drawn = [self.generator.choice(self.population) for _ in range(self.sample)]
        return max(drawn, key=lambda cell: cell.score)

    def _learn(self, evaluated: Evaluated, proposal: Proposal) -> None:
        self.population.append(evaluated)
        if len(self.population) <= self.size:
            return
        if self.death == "oldest":
            self.population.popleft()
        else:
            self.population.remove(min(self.population, key=lambda cell: cell.score))

    def _own_state(self) -> dict[str, Any]:
        return {"population": [cell.to_json() for cell in self.population]}

    def _load_own(self, state: Mapping[str, Any]) -> None:
        self.population = deque(map(Evaluated.from_json, state["population"]))

"""Random search: what any other has to beat."""

import sys
from typing import ClassVar

from prnas.searchers.base import Evaluated, Proposal, Searcher


class RandomSearch(Searcher):
    """Every cell is drawn uniformly, with replacement (Li and Talwalkar, 2019)."""

    name: ClassVar[str] = "random"

    @property
    def num_settled(self) -> int:
        return sys.maxsize

    def _propose(self) -> Proposal:
        return Proposal(self.space.draw(self.generator))

    def _learn(self, evaluated: Evaluated, proposal: Proposal) -> None:
        pass

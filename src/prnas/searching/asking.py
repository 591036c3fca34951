"""A searcher at work: it asks, somebody scores, and the budget ends it."""

import time
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from prnas.config.searcher import BudgetConfig, SearcherConfig
from prnas.runs.records import EvaluationRecord
from prnas.searchers.base import Searcher
from prnas.searchers.cells import CellSpace
from prnas.searchers.evolution import Evolution
from prnas.searchers.local_search import LocalSearch
from prnas.searchers.random_search import RandomSearch
from prnas.searchers.reinforce import Reinforce
from prnas.searching.controller_search import ControllerSearch
from prnas.space.genotype import Genotype


def make_searcher(settings: SearcherConfig, space: CellSpace, seed: int) -> Searcher:
    """The searcher of a config, at its start."""
    generator = Random(f"{seed}/searcher")
    match settings.method:
        case "none":
            raise ValueError("the config has no searcher")
        case "random":
            return RandomSearch(space, generator)
        case "evolution":
            own = settings.evolution
            return Evolution(space, generator, own.population, own.sample, own.mutation, own.death)
        case "local-search":
            return LocalSearch(space, generator, settings.local_search.move)
        case "reinforce":
            return Reinforce(space, generator, settings.reinforce.lr, settings.reinforce.baseline)
        case "controller":
            return ControllerSearch(space, generator, settings.controller)


class Asking:
    """Evaluations one after the other, each of which takes so many `images`."""

    def __init__(
        self,
        searcher: Searcher,
        budget: BudgetConfig,
        images: int,
        saved: Mapping[str, Any] | None = None,
    ) -> None:
        """`saved`: go on from the `state` of another."""
        self.searcher, self.budget, self._images = searcher, budget, images
        self.seconds = 0.0  # of all evaluations so far
        if saved is not None:
            self.seconds = float(saved["seconds"])
            searcher.load_state(saved["searcher"])

    @property
    def number(self) -> int | None:
        """How many evaluations there will be; `None`: the clock decides."""
        return self.budget.evaluations_for(self._images)

    @property
    def images(self) -> int:
        """That all evaluations so far have taken."""
        return self.searcher.num_evaluations * self._images

    @property
    def goes_on(self) -> bool:
        """Whether there is a budget for one more. There is one for the first in any case."""
        done, most, seconds = self.searcher.num_evaluations, self.number, self.budget.seconds
        affordable = (most is None or done < most) and (seconds is None or self.seconds < seconds)
        return done == 0 or affordable

    def evaluate(self, score: Callable[[Genotype], float]) -> EvaluationRecord:
        """Score the cell that is asked for, and tell it."""
        start = time.perf_counter()
        proposal = self.searcher.proposal
        value = score(proposal.genotype)
        self.searcher.tell(proposal.genotype, value)
        best = self.searcher.best
        seconds = time.perf_counter() - start
        self.seconds += seconds
        return EvaluationRecord(
            number=self.searcher.num_evaluations,
            genotype=proposal.genotype.to_json(),
            score=value,
            best=value if best is None else best.score,
            parent=proposal.parent,
            images=self.images,
            entropy=self.searcher.entropy,
            seconds=seconds,
        )

    def state(self) -> dict[str, Any]:
        """All that is needed to go on, as plain data."""
        return {"seconds": self.seconds, "searcher": self.searcher.state()}

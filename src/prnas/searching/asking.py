"""A searcher at work: it asks, somebody scores, and the budget ends it."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from prnas.config.searcher import BudgetConfig, SearcherConfig
from prnas.runs.records import EvaluationRecord
from prnas.searchers.base import Proposal, Searcher
from prnas.searchers.cells import CellSpace
from prnas.searchers.evolution import Evolution
from prnas.searchers.halving import SuccessiveHalving
from prnas.searchers.local_search import LocalSearch
from prnas.searchers.random_search import RandomSearch
from prnas.searchers.reinforce import Reinforce
from prnas.searching.controller_search import ControllerSearch


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
        case "halving":
            return SuccessiveHalving(
                space, generator, settings.halving.factor, settings.halving.rungs
            )


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of evaluations: images, trained on or looked at, and steps, batches of them."""

    images: int
    steps: int

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.images + other.images, self.steps + other.steps)

    def __mul__(self, number: int) -> "Cost":
        return Cost(self.images * number, self.steps * number)


class Asking:
    """Evaluations one after the other, each of which has a `cost`."""

    def __init__(
        self,
        searcher: Searcher,
        budget: BudgetConfig,
        cost: Callable[[Proposal], Cost],
        saved: Mapping[str, Any] | None = None,
        beside: Callable[[int], Cost] = lambda _: Cost(0, 0),
        agreed: Callable[[float], float] = lambda seconds: seconds,
    ) -> None:
        """`saved`: go on from the `state` of another.

        `beside`: what else counts, with so many evaluations. `agreed`: the seconds by which all
        processes decide, and in which others may be counted as well.
        """
        self.searcher, self.budget, self._cost = searcher, budget, cost
        self._beside, self._agreed = beside, agreed
        self.seconds, self.spent = 0.0, Cost(0, 0)  # Totals of all evaluations so far.
        if saved is not None:
            self.seconds = float(saved["seconds"])
            self.spent = Cost(int(saved.get("images", 0)), int(saved.get("steps", 0)))
            searcher.load_state(saved["searcher"])

    @property
    def images(self) -> int:
        """The number of images that all evaluations so far have taken."""
        return self.spent.images

    @property
    def goes_on(self) -> bool:
        """Whether there is a budget for one more. There is one for the first in any case."""
        budget, done = self.budget, self.searcher.num_evaluations
        if done == 0:
            return True
        if budget.evaluations is not None and done >= budget.evaluations:
            return False
        if budget.seconds is not None and self._agreed(self.seconds) >= budget.seconds:
            return False
        if budget.images is budget.steps is None:
            return True
        return self._covers(self.spent + self._cost(self.searcher.proposal), done + 1)

    def upcoming(self, most: int) -> list[tuple[Proposal, int]]:
        """The next evaluations that are settled and within the budget, with their numbers."""
        budget, done, spent = self.budget, self.searcher.num_evaluations, self.spent
        if budget.evaluations is not None:
            most = min(most, budget.evaluations - done)
        affordable: list[tuple[Proposal, int]] = []
        for number, proposal in enumerate(self.searcher.upcoming(max(most, 1)), start=done + 1):
            spent += self._cost(proposal)
            if number > 1 and not self._covers(spent, number):
                break
            affordable.append((proposal, number))
        return affordable

    @property
    def used(self) -> float | None:
        """The share of the budget in images, steps or seconds that is used; none if it has none."""
        budget, whole = self.budget, self.spent + self._beside(self.searcher.num_evaluations)
        used: list[float] = []
        if budget.images is not None:
            used.append(whole.images / budget.images)
        if budget.steps is not None:
            used.append(whole.steps / budget.steps)
        if budget.seconds is not None:
            used.append(self._agreed(self.seconds) / budget.seconds)
        return max(used, default=None)

    def _covers(self, spent: Cost, evaluations: int) -> bool:
        budget, spent = self.budget, spent + self._beside(evaluations)
        return (budget.images is None or spent.images <= budget.images) and (
            budget.steps is None or spent.steps <= budget.steps
        )

    def evaluate(self, score: Callable[[Proposal, int], float], **facts: Any) -> EvaluationRecord:
        """Score the cell that is asked for, in the evaluation of its number, and tell it.

        `facts` are more fields of its record.
        """
        start = time.perf_counter()
        proposal = self.searcher.proposal
        value = score(proposal, self.searcher.num_evaluations + 1)
        self.spent += self._cost(proposal)
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
            share=None if proposal.share == 1 else proposal.share,
            entropy=self.searcher.entropy,
            used=self.used,
            seconds=seconds,
            **facts,
        )

    def state(self) -> dict[str, Any]:
        """All that is needed to go on, as plain data."""
        spent = {"images": self.spent.images, "steps": self.spent.steps}
        return {"seconds": self.seconds, **spent, "searcher": self.searcher.state()}

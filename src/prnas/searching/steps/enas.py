"""ENAS (Pham et al., 2018): weights are trained by what a controller writes, and it by them."""

from collections.abc import Mapping
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch

from prnas.runs.run import Stopped
from prnas.searchers.base import Searcher
from prnas.searchers.cells import CellSpace
from prnas.searching.asking import Cost
from prnas.searching.cell_accuracy import BatchAccuracy
from prnas.searching.controller_search import ControllerSearch
from prnas.searching.steps.sampled import CellStep
from prnas.space.genotype import Genotype

if TYPE_CHECKING:
    from prnas.searching.search import Search


class EnasStep(CellStep):
    """Each step trains the weights of a cell that the controller writes anew.

    After every epoch but grace epochs it is the controller's turn: its rewards are the accuracies
    of what it writes, each on another batch of the architecture half, by the statistics of that
    batch. In the end the cells that it writes are scored, and it learns no more.
    """

    name = "enas"
    architecture_cost = 0.1
    ends_with = "architecture"

    def __init__(self, search: "Search") -> None:
        super().__init__(search)
        self._facts: dict[str, Any] = {}
        self.start_cycle()

    def start_cycle(self) -> None:
        """Other candidates need another controller."""
        config, state = self.search.config, self.search.state
        space = CellSpace.of_pools(state.supernet.pools, config.network.output)
        generator = Random(f"{config.seed}/controller/{state.position.cycle}")
        self.policy = ControllerSearch(space, generator, config.searcher.controller)
        self.accuracy = BatchAccuracy(self.search)

    @torch.no_grad()
    def cell(self, purpose: str, number: int) -> Genotype:
        """A cell written by the present controller; the same for the same purpose and number."""
        cycle = self.search.state.position.cycle
        drawn_by = Random(f"{self.search.config.seed}/{purpose}/{cycle}/{number}")
        return self.policy.write(drawn_by).genotype

    def end_epoch(self) -> None:
        self._facts = {}
        if self.search.grace:
            return
        before = self.policy.state()
        try:
            self._train_controller()
        except Stopped:
            # So that what is saved is the end of the epoch's last step: all else comes again.
            self.policy.load_state(before)
            raise

    def _train_controller(self) -> None:
        policy, settings = self.policy, self.search.config.searcher.controller
        scores: list[float] = []
        entropies: list[float] = []
        update = Cost(settings.batch * self.accuracy.size, settings.batch)
        spending = self.search.spending
        for _ in range(settings.updates):
            if not spending.leaves(update):
                break
            spending.spent += update
            for _ in range(settings.batch):
                cell = policy.ask()
                entropies.append(policy.entropy or 0.0)
                scores.append(self.accuracy(cell, policy.num_evaluations))
                policy.tell(cell, scores[-1])
            self.search.stop_on_signal()
        if not scores:
            return
        self._facts = {
            "controller_score": fmean(scores),
            "controller_entropy": fmean(entropies),
            "controller_baseline": policy.baseline,
        }

    def facts(self) -> dict[str, Any]:
        return self._facts

    def searcher(self, space: CellSpace) -> Searcher:
        settings, seed = self.search.config.searcher.controller, self.search.config.seed
        searcher = ControllerSearch(space, Random(f"{seed}/searcher"), settings)
        searcher.controller.load_state_dict(self.policy.controller.state_dict())
        searcher.learns = False
        return searcher

    def state(self) -> dict[str, Any]:
        return {"policy": self.policy.state()}

    def load_state(self, saved: Mapping[str, Any]) -> None:
        self.policy.load_state(saved["policy"])

"""A searcher on the supernet that a search has trained: cells are scored with shared weights."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from prnas.runs.preparation import torch_generator
from prnas.runs.records import EvaluationRecord
from prnas.searchers.base import Evaluated
from prnas.searchers.cells import CellSpace
from prnas.searching.asking import Asking, Cost, make_searcher
from prnas.searching.cell_accuracy import Batch, batches_of, fetched, num_correct
from prnas.searching.cycle_end import Decision
from prnas.searching.proxies import Proxies
from prnas.space.change import CellChange, Change, EdgeChange, Pruned
from prnas.space.genotype import Genotype
from prnas.space.pools import Pools
from prnas.space.shape import Role

if TYPE_CHECKING:
    from prnas.searching.search import Search


class SupernetScorer:
    """The accuracy of cells on images of the architecture half: the same images for every cell.

    They are drawn by the seed and not augmented, and not a bit of the search's state changes.
    Processes share the batches out. Batch normalisation uses the statistics of their batches; or,
    recalibrated, those of some batches of the weights' half, which are taken anew for each cell.
    """

    def __init__(self, search: "Search") -> None:
        half = search.indices["architecture"]
        generator = torch_generator(search.config.seed, "cells", search.state.position.cycle)
        order = half[torch.randperm(len(half), generator=generator)]
        batch = min(search.config.validation.batch, len(order))
        few = order[: search.config.searcher.supernet.batches * batch]
        self.search, self.num_images, self.num_all = search, len(few), len(order)
        self.num_batches = len(batches_of(few, batch))
        share = slice(search.processes.rank, None, search.processes.size)
        self._few, self._all = batches_of(few, batch)[share], batches_of(order, batch)[share]
        self._few_fetched: list[Batch] = []  # the few batches of this process
        self._calibration: list[Tensor] = []
        own = search.config.searcher.supernet
        if own.statistics == "recalibrated":
            half = search.indices["weights"]
            order = half[torch.randperm(len(half), generator=generator)]
            some = batches_of(order[: own.calibration * batch], batch)
            self._calibration = [images for images, _ in fetched(search, some)]

    def accuracy(self, genotype: Genotype, all_images: bool = False) -> float:
        """The accuracy of a cell on some images, or on all of the architecture half."""
        batches = fetched(self.search, self._all) if all_images else self._few_images()
        correct = num_correct(self.search, genotype, batches, self._calibration)
        (total,) = self.search.processes.sum([float(correct)])
        return total / (self.num_all if all_images else self.num_images)

    def _few_images(self) -> Sequence[Batch]:
        if not self._few_fetched:
            self._few_fetched = list(fetched(self.search, self._few))
        return self._few_fetched


class CellChoice:
    """A searcher at work among the cells of a trained supernet; the best are scored again.

    Of the cells that it asks for, the best `finalists` are scored on the whole architecture half,
    and the best of these is chosen (Li and Talwalkar, 2019).
    """

    def __init__(
        self, search: "Search", pools: Pools, saved: Mapping[str, Any] | None = None
    ) -> None:
        """`saved`: go on from the `state` of another."""
        config = search.config
        self.search, self.scorer = search, SupernetScorer(search)
        space = CellSpace.of_pools(pools, config.network.output)
        searcher = search.step.searcher(space)
        if searcher is None:
            searcher = make_searcher(config.searcher, space, config.seed)
        cost = Cost(self.scorer.num_images, self.scorer.num_batches)
        spending = search.spending
        trained = spending.seconds
        self.asking = Asking(
            searcher,
            config.searcher.budget,
            lambda _: cost,
            saved,
            spending.beside,
            lambda seconds: spending.agreed(trained + seconds),
        )
        self.proxies: Proxies | None = None
        if config.searcher.proxy.record:
            half = search.indices["architecture"]
            self.proxies = Proxies(config, search.data, half, search.normalization)
        self.finalists: list[Evaluated] = []  # the best so far
        self.scores: list[float] = []  # Scores of the finalists, on the whole half.
        if saved is not None:
            self.finalists = [Evaluated.from_json(cell) for cell in saved["finalists"]]
            self.scores = [float(score) for score in saved["scores"]]

    def genotype(self) -> Genotype:
        """All that is left to do, and the cell that is chosen; of equals, the earlier finalist."""
        while not self.scores and self.asking.goes_on:
            cell = self.asking.searcher.ask()
            facts = {"proxies": None if self.proxies is None else self.proxies.all(cell)}
            record = self.asking.evaluate(
                lambda proposal, _: self.scorer.accuracy(proposal.genotype), **facts
            )
            self._enter(Evaluated(Genotype.from_json(record.genotype), record.score, record.number))
            self._remember(record)
        while len(self.scores) < len(self.finalists):
            self._remember(self._score_next())
        return self.finalists[self.scores.index(max(self.scores))].genotype

    def _enter(self, cell: Evaluated) -> None:
        """Add a cell to the finalists if it is as good; each cell once, and of equals the first."""
        if all(cell.genotype != other.genotype for other in self.finalists):
            ranked = sorted([*self.finalists, cell], key=lambda other: -other.score)
            self.finalists = ranked[: self.search.config.searcher.supernet.finalists]

    def _score_next(self) -> EvaluationRecord:
        start = time.perf_counter()
        finalist = self.finalists[len(self.scores)]
        score = self.scorer.accuracy(finalist.genotype, all_images=True)
        self.scores.append(score)
        return EvaluationRecord(
            number=finalist.number,
            stage="final",
            genotype=finalist.genotype.to_json(),
            score=score,
            best=max(self.scores),
            images=self.asking.images + len(self.scores) * self.scorer.num_all,
            used=self.asking.used,
            seconds=time.perf_counter() - start,
        )

    def _remember(self, record: EvaluationRecord) -> None:
        self.search.record(record)
        self.search.emit("on_evaluation", record)
        self.search.stop_or_save()

    def state(self) -> dict[str, Any]:
        """All that is needed to go on, as plain data."""
        finalists = [finalist.to_json() for finalist in self.finalists]
        return {**self.asking.state(), "finalists": finalists, "scores": self.scores}


def decision_for(pools: Pools, genotype: Genotype) -> Decision:
    """The decision that keeps a genotype's operations, and first candidates on its unused edges."""
    cells: dict[Role, CellChange] = {}
    for role in pools.roles:
        chosen = {(state, edge.input): edge.op for state, edge in genotype.cell(role).edges}
        cell = pools.cell(role)
        changes: list[EdgeChange] = []
        for position, edge in zip(cell.positions, cell.edges, strict=True):
            stays = chosen.get(position, edge.candidates[0])
            share = 1 / len(edge.candidates)  # nothing was said of single candidates
            gone = tuple(Pruned(op, share) for op in edge.candidates if op != stays)
            changes.append(EdgeChange(gone))
        cells[role] = CellChange(tuple(changes))
    change = Change.of(cells)
    return Decision(change, pools.apply(change), genotype)

"""Searchers on the table of NAS-Bench-201 do as well as they are known to."""

from collections.abc import Callable
from random import Random
from statistics import fmean, stdev

import pytest

from prnas.searchers.base import Searcher
from prnas.searchers.evolution import Evolution
from prnas.searchers.local_search import LocalSearch
from prnas.searchers.random_search import RandomSearch
from prnas.searchers.reinforce import Reinforce
from prnas.searchers.table_scorer import TableScorer
from prnas.space.nasbench201 import table
from prnas.space.nasbench201.cells import genotype_of, index_of
from prnas.space.nasbench201.truth import truth_at
from tests.support.made_scores import SPACE201, SPACES

EVALUATIONS = 100
# Test accuracy after 200 epochs on CIFAR-10 of the cell with the best validation accuracy after 12,
# of 100 evaluations: mean and deviation of 500 runs.
GOLDEN: dict[str, tuple[Callable[[Random], Searcher], float, float]] = {
    "random": (lambda generator: RandomSearch(SPACE201, generator), 93.75, 0.35),
    "evolution S3": (lambda generator: Evolution(SPACE201, generator, 10, 3), 93.93, 0.40),
    "evolution S10": (lambda generator: Evolution(SPACE201, generator, 10, 10), 94.06, 0.38),
    "worst dies": (
        lambda generator: Evolution(SPACE201, generator, 10, 10, death="worst"), 94.09, 0.39,
    ),
    "reinforce": (lambda generator: Reinforce(SPACE201, generator), 93.77, 0.31),
    "local search": (lambda generator: LocalSearch(SPACE201, generator), 93.99, 0.43),
}  # fmt: skip


def found(name: str, runs: range) -> list[float]:
    """What searches with these seeds end with, in per cent."""
    scorer, make = TableScorer(), GOLDEN[name][0]
    judge = table.column("e200_test_c10")
    accuracies: list[float] = []
    for seed in runs:
        searcher = make(Random(f"{name}/{seed}"))
        for _ in range(EVALUATIONS):
            cell = searcher.ask()
            searcher.tell(cell, scorer.score(cell))
        assert searcher.best is not None
        index = index_of(searcher.best.genotype)
        assert index is not None
        accuracies.append(judge[index] / table.UNITS)
    return accuracies


@pytest.mark.slow
@pytest.mark.parametrize("name", GOLDEN)
def test_500_runs_end_where_they_are_known_to(name: str) -> None:
    """The standard error is 0.02: a wrong tournament, death or mutation would show."""
    _, mean, deviation = GOLDEN[name]
    accuracies = found(name, range(500))
    assert fmean(accuracies) == pytest.approx(mean, abs=0.08)
    assert stdev(accuracies) == pytest.approx(deviation, abs=0.08)


@pytest.mark.parametrize("name", GOLDEN)
def test_few_runs_end_near_there(name: str) -> None:
    """With 40 runs, four standard errors."""
    _, mean, deviation = GOLDEN[name]
    assert fmean(found(name, range(40))) == pytest.approx(mean, abs=4 * deviation / 40**0.5)


def test_the_signal_is_the_validation_after_12_epochs() -> None:
    for index in (0, 777, 15_624):
        truth = truth_at(index)
        for name, of in truth.data_sets.items():
            score = TableScorer(name).score(genotype_of(index))
            assert score == pytest.approx(of.validation_12 / 100, abs=1e-12)
    assert TableScorer().images == 300_000


def test_other_cells_have_no_score() -> None:
    with pytest.raises(ValueError, match="only cells of NAS-Bench-201"):
        TableScorer().score(SPACES["darts"].draw(Random(0)))

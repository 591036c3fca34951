"""All searchers keep the protocol: they ask, are told, and go on from their state exactly."""

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prnas.searchers.base import Searcher
from prnas.searchers.random_search import RandomSearch
from tests.support.made_scores import KINDS, SPACES, asked, score_of
from tests.support.strategies import seeds


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("kind", KINDS)
@given(seed=seeds, at=st.integers(0, 40), pending=st.booleans())
@settings(max_examples=4)
def test_one_that_is_saved_goes_on_exactly(
    kind: str, space: str, seed: int, at: int, pending: bool
) -> None:
    def new(seed: int) -> Searcher:
        return KINDS[kind](SPACES[space], Random(seed))

    whole = new(seed)
    expected = asked(whole, 45)
    assert expected == asked(new(seed), 45), "the same seed asks the same"
    cut = new(seed)
    found = asked(cut, at)
    if pending:
        cut.ask()
    state = json.loads(json.dumps(cut.state()))
    resumed = new(seed + 1)
    resumed.load_state(state)
    assert resumed.state() == state
    found += asked(resumed, 45 - at)
    assert found == expected
    assert resumed.state() == whole.state()
    assert resumed.best == whole.best


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_is_the_first_of_the_highest_score(kind: str) -> None:
    searcher = KINDS[kind](SPACES["darts"], Random(0))
    assert searcher.best is None
    history = []
    for _ in range(60):
        genotype = searcher.ask()
        assert searcher.ask() is genotype, "asked again, it answers the same"
        score = round(score_of(genotype), 1)  # with ties
        history.append((score, genotype, searcher.proposal.share))
        searcher.tell(genotype, score)
    whole = [(score, i) for i, (score, _, share) in enumerate(history, 1) if share == 1]
    best = max(whole, key=lambda pair: (pair[0], -pair[1]))
    assert searcher.best is not None
    assert (searcher.best.score, searcher.best.number) == best
    assert searcher.best.genotype == history[best[1] - 1][1]
    assert searcher.num_evaluations == 60


def test_only_what_was_asked_for_can_be_told() -> None:
    searcher = RandomSearch(SPACES["darts"], Random(0))
    cell = searcher.ask()
    other = SPACES["darts"].draw(Random(99))
    with pytest.raises(ValueError, match="of the cell that was asked for last"):
        searcher.tell(other, 0.5)
    with pytest.raises(ValueError, match="finite"):
        searcher.tell(cell, float("nan"))
    searcher.tell(cell, 0.5)
    with pytest.raises(ValueError, match="of the cell that was asked for last"):
        searcher.tell(cell, 0.5)


def test_a_state_is_of_one_kind() -> None:
    state = RandomSearch(SPACES["darts"], Random(0)).state()
    with pytest.raises(ValueError, match="the state is of 'random', not of 'evolution'"):
        KINDS["evolution"](SPACES["darts"], Random(0)).load_state(state)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_settled_comes_whatever_the_scores_are(kind: str) -> None:
    searcher, scores = KINDS[kind](SPACES["nasbench201"], Random(1)), Random(2)
    most_settled = 1
    while searcher.num_evaluations < 60:
        if searcher.num_evaluations % 3:
            searcher.ask()  # Asking before changes nothing.
        before = searcher.state()
        settled = searcher.upcoming(7)
        assert searcher.state() == before
        most_settled = max(most_settled, len(settled))
        assert asked(searcher, len(settled), lambda _: scores.random()) == settled
    several = {"random", "evolution", "evolution by morphisms", "local search", "halving"}
    assert (most_settled > 1) == (kind in several)

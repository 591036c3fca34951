"""Successive halving: rungs of fewer cells with larger shares, each as dear as the other."""

from random import Random

import pytest

from prnas.searchers.halving import SuccessiveHalving
from tests.support.made_scores import SPACES, asked, score_of

SPACE = SPACES["nasbench201"]


def test_the_better_third_rises() -> None:
    halving = SuccessiveHalving(SPACE, Random(1), factor=3, rungs=3)
    history = asked(halving, 13)
    shares = [one.share for one in history]
    assert shares == pytest.approx([1 / 9] * 9 + [1 / 3] * 3 + [1])
    scores = [score_of(one.genotype) for one in history]
    best = sorted(range(9), key=lambda i: -scores[i])[:3]
    assert [one.parent for one in history[9:12]] == [i + 1 for i in best]
    assert [one.genotype for one in history[9:12]] == [history[i].genotype for i in best]
    assert history[12].genotype == history[best[0]].genotype
    assert halving.best is not None
    assert halving.best.number == 13, "only a whole evaluation counts"
    again = asked(halving, 13)
    assert [one.share for one in again] == shares, "another round"
    assert again[0].genotype != history[0].genotype


def test_scores_of_a_rung_are_compared_with_each_other_only() -> None:
    """A cell may look better after a little than any does after more."""
    halving = SuccessiveHalving(SPACE, Random(2), factor=2, rungs=3)
    scores = iter([0.9, 0.8, 0.1, 0.2, 0.3, 0.4, 0.35])
    history = asked(halving, 7, lambda _: next(scores))
    assert [one.parent for one in history] == [None] * 4 + [1, 2, 6]
    assert halving.best is not None
    assert halving.best.score == 0.35


@pytest.mark.parametrize(("factor", "rungs"), [(1, 3), (3, 0)])
def test_numbers_that_cannot_be_are_refused(factor: int, rungs: int) -> None:
    with pytest.raises(ValueError, match="factor must be at least 2 and rungs 1"):
        SuccessiveHalving(SPACE, Random(0), factor, rungs)

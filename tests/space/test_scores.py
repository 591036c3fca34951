"""Scores of candidates: probabilities, checked."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.space.scores import as_probabilities, checked_scores, softmax


@given(st.lists(st.floats(-700, 700), min_size=1, max_size=8))
def test_softmax(weights: list[float]) -> None:
    found = softmax(weights)
    assert sum(found) == pytest.approx(1)
    order = sorted(range(len(weights)), key=weights.__getitem__)
    assert all(found[a] <= found[b] for a, b in pairwise(order))


def test_probabilities_of_any_scores() -> None:
    assert as_probabilities([1.0, 3.0]) == [0.25, 0.75]
    assert as_probabilities([0.0, 0.0]) == [0.5, 0.5]
    scores = softmax([0.1, 0.2, 0.3])
    assert as_probabilities(scores) == scores  # to the bit: they add up to one already


@pytest.mark.parametrize(
    ("weights", "size", "words"),
    [([0.0], 2, "2 candidates need 2"), ([float("nan"), 0.0], 2, "must be finite")],
)
def test_weights_that_are_none(weights: list[float], size: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        checked_scores(softmax, weights, size)


@pytest.mark.parametrize("values", [[-1.0, 2.0], [1.0], [float("inf"), 0.0]])
def test_scores_that_are_none(values: list[float]) -> None:
    with pytest.raises(ValueError, match="scores must be finite and at least 0"):
        checked_scores(lambda weights: values, [0.0, 0.0], 2)

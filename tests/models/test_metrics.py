"""Metrics by hand, beside the textbook's: one image and one class at a time."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from prnas.models.confusions import Confusion, confusions
from prnas.models.metrics import Z_95, confusion_matrix, interval, loss_sum, ranks

# Whole numbers, so that equal logits are common.
VALUES = st.one_of(st.integers(-3, 3).map(float), st.floats(-30, 30))


@st.composite
def guesses(draw: st.DrawFn) -> tuple[list[list[float]], list[int]]:
    classes = draw(st.integers(1, 8))
    number = draw(st.integers(1, 12))
    row = st.lists(VALUES, min_size=classes, max_size=classes)
    logits = draw(st.lists(row, min_size=number, max_size=number))
    labels = st.lists(st.integers(0, classes - 1), min_size=number, max_size=number)
    return logits, draw(labels)


@st.composite
def matrices(draw: st.DrawFn) -> list[list[int]]:
    classes = draw(st.integers(1, 7))
    row = st.lists(st.integers(0, 9), min_size=classes, max_size=classes)
    return draw(st.lists(row, min_size=classes, max_size=classes))


@given(guesses())
def test_ranks_are_places_in_a_sorted_list(made: tuple[list[list[float]], list[int]]) -> None:
    logits, labels = made
    naive = [
        sorted(range(len(row)), key=lambda one, row=row: (-row[one], one)).index(label)
        for row, label in zip(logits, labels, strict=True)
    ]
    given_logits = torch.tensor(logits, dtype=torch.float64)
    found = ranks(given_logits, torch.tensor(labels))
    assert found.tolist() == naive
    # The first place is the one that is predicted.
    right = given_logits.argmax(1) == torch.tensor(labels)
    assert (found == 0).tolist() == right.tolist()


@given(guesses())
def test_the_loss_is_that_of_the_definition(made: tuple[list[list[float]], list[int]]) -> None:
    logits, labels = made
    naive = math.fsum(
        -math.log(math.exp(row[label]) / math.fsum(map(math.exp, row)))
        for row, label in zip(logits, labels, strict=True)
    )
    found = loss_sum(torch.tensor(logits, dtype=torch.float64), torch.tensor(labels))
    assert found == pytest.approx(naive, rel=1e-12, abs=1e-12)


def test_the_loss_of_far_logits_is_finite() -> None:
    assert loss_sum(torch.tensor([[2000.0, -2000.0]]), torch.tensor([1])) == 4000.0


@given(guesses())
def test_confusions_are_counted_one_by_one(made: tuple[list[list[float]], list[int]]) -> None:
    logits, labels = made
    classes = len(logits[0])
    predicted = [row.index(max(row)) for row in logits]
    naive = [
        [
            sum(pair == (true, taken) for pair in zip(labels, predicted, strict=True))
            for taken in range(classes)
        ]
        for true in range(classes)
    ]
    found = confusion_matrix(torch.tensor(labels), torch.tensor(predicted), classes)
    assert found.dtype == torch.int64
    assert found.tolist() == naive


@given(matrices(), st.integers(0, 60))
def test_the_most_frequent_confusions_come_first(counts: list[list[int]], most: int) -> None:
    found = confusions(counts, most)
    mistakes = sum(
        count > 0 for i, row in enumerate(counts) for j, count in enumerate(row) if i != j
    )
    assert len(set(found)) == len(found) == min(most, mistakes)
    for one in found:
        assert one.true != one.predicted
        assert one.count == counts[one.true][one.predicted] > 0
        assert one.share == one.count / sum(counts[one.true])
    order = [(one.count, one.share) for one in found]
    assert order == sorted(order, reverse=True)
    told = {(one.true, one.predicted) for one in found}
    for i, row in enumerate(counts):
        for j, count in enumerate(row):
            if found and i != j and count > found[0].count:
                pytest.fail("a more frequent one was left out")
            if found and i != j and count > found[-1].count:
                assert (i, j) in told


def test_confusions_by_example() -> None:
    counts = [[8, 2, 0], [2, 2, 0], [3, 0, 7]]
    assert confusions(counts, 2) == (Confusion(2, 0, 3, 0.3), Confusion(1, 0, 2, 0.5))


# Newcombe, Statistics in Medicine 17 (1998), table I: the score method without correction.
@pytest.mark.parametrize(
    ("right", "total", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611)],
)
def test_the_interval_is_the_published_one(right: int, total: int, low: float, high: float) -> None:
    assert interval(right, total) == (
        pytest.approx(low, abs=5e-5),
        pytest.approx(high, abs=5e-5),
    )


@given(st.integers(1, 100_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_solves_its_equation(pair: tuple[int, int]) -> None:
    right, total = pair
    share = right / total
    low, high = interval(right, total)
    assert 0 <= low <= share <= high <= 1
    for end in (low, high):
        if 0 < end < 1:
            deviation = math.sqrt(end * (1 - end) / total)
            assert abs(share - end) == pytest.approx(Z_95 * deviation, rel=1e-6)

"""The choice, the paired test and calibration, against what can be counted by hand."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.fitting.verdict import Trained, best_of, calibration, compare, mcnemar, sentences

ONE = Trained("found", "found by the search", 9, 9, 9, 9, 9.0, 0.9, 0.3, 50, 90, 100, 1.0)
ZOO = replace(ONE, name="zoo", label="pr-darts-dl2, published")
PLAIN = replace(ONE, name="plain", label="resnet8, plain, 16 channels")


def by_counting(first: int, second: int) -> float:
    """All ways in which coins could have fallen that are at least as uneven."""
    number = first + second
    uneven = abs(first - second)
    ways = sum(abs(2 * sum(coins) - number) >= uneven for coins in product((0, 1), repeat=number))
    return float(Fraction(ways, 2**number))


@pytest.mark.parametrize("first", range(6))
@pytest.mark.parametrize("second", range(6))
def test_mcnemar_counts_coins(first: int, second: int) -> None:
    assert mcnemar(first, second) == pytest.approx(by_counting(first, second))


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1))
def test_comparisons_are_corrected_and_in_order(images: list[tuple[bool, bool, bool]]) -> None:
    found, zoo, plain = ([image[index] for image in images] for index in range(3))
    compared = compare(found, {"zoo": zoo, "plain": plain})
    assert [each.other for each in compared] == ["zoo", "plain"]
    low, high = sorted(compared, key=lambda each: each.p)
    assert low.corrected == min(1.0, 2 * low.p)
    assert high.corrected == max(low.corrected, high.p)
    for each, theirs in zip(compared, (zoo, plain), strict=True):
        assert each.only_found - each.only_other == sum(found) - sum(theirs)


def test_the_best_is_chosen_by_validation_not_by_the_test() -> None:
    good = replace(ZOO, validation=0.95, correct=10)
    assert best_of([ONE, good, PLAIN]) is good
    assert best_of([ONE, replace(ZOO, validation_loss=0.2)]).name == "zoo"
    assert best_of([ONE, replace(good, within_limits=False)]) is ONE
    only = replace(good, within_limits=False)
    assert best_of([only]) is only


def said(ours: list[bool], zoo: list[bool], plain: list[bool]) -> str:
    compared = compare(ours, {"zoo": zoo, "plain": plain})
    return " ".join(sentences([ONE, ZOO, PLAIN], ONE, compared))


def test_whether_the_search_paid_off_is_said() -> None:
    right, half = [True] * 40, [True, False] * 20
    assert "paid off on this data: what it found is better than" in said(right, half, half)
    text = said(right, half, right)
    assert "did not pay off on this data: the plain network was as good" in text
    assert "Beyond chance, what it found is better than the published cell" in text
    text = said(half, right, half)
    assert "did not pay off on this data: the published cell was better" in text
    assert "The plain network was as good" in text
    text = said(right, right, right)
    assert "the published cell and the plain network were as good" in text
    assert "90.0 % (95 % interval 82.6 % to 94.5 %)" in text


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60))
def test_calibration_is_the_mean_distance(images: list[tuple[float, bool]]) -> None:
    confidences, right = [list(column) for column in zip(*images, strict=True)]
    bins, error = calibration(confidences, right)  # pyright: ignore[reportArgumentType]
    assert sum(one.images for one in bins) == len(images)
    plain = 0.0
    for one in bins:
        inside = [
            (sure, good)
            for sure, good in images
            if one.low <= sure < one.high or (sure == 1.0 and one.high == 1.0)
        ]
        if len(inside) != one.images:  # A number that is rounded into its neighbour.
            return
        plain += abs(sum(sure for sure, _ in inside) - sum(good for _, good in inside))
    assert error == pytest.approx(plain / len(images), abs=1e-9)


def test_a_network_that_is_always_sure_and_half_right() -> None:
    assert calibration([1.0] * 4, [True, False] * 2)[1] == 0.5

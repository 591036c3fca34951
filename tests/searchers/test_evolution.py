"""Ageing evolution: who becomes a parent, who dies."""

from collections import Counter
from random import Random
from typing import Literal

import pytest

from prnas.searchers.evolution import Evolution
from prnas.space.analysis.distance import edit_distance
from tests.support.made_scores import SPACES, asked

SPACE = SPACES["nasbench201"]


@pytest.mark.parametrize("death", ["oldest", "worst"])
def test_the_population_keeps_its_size_and_one_leaves(death: Literal["oldest", "worst"]) -> None:
    evolution = Evolution(SPACE, Random(1), 6, 3, death=death)
    for number in range(1, 40):
        before = [one.number for one in evolution.population]
        scores = {one.number: one.score for one in evolution.population}
        asked(evolution, 1)
        after = [one.number for one in evolution.population]
        assert len(after) == min(number, 6)
        scores[number] = next(
            (one.score for one in evolution.population if one.number == number), -1.0
        )
        if number > 6:
            (gone,) = {*before, number} - {*after}
            if death == "oldest":
                assert gone == min(before)
            else:
                assert gone == number or scores[gone] == min(scores.values())


def test_the_oldest_leaves_although_it_is_the_best() -> None:
    evolution = Evolution(SPACE, Random(2), 3, 2)
    scores = iter([1.0, 0.1, 0.2, 0.3])
    asked(evolution, 4, lambda _: next(scores))
    assert [one.number for one in evolution.population] == [2, 3, 4]
    assert evolution.best is not None
    assert evolution.best.number == 1, "the answer is the best of the whole history"


def test_parents_are_drawn_by_tournament_with_replacement() -> None:
    """The one of rank r is the best of a sample with (P - r + 1)^S - (P - r)^S of P^S."""
    size, sample, number = 5, 3, 20_000
    evolution = Evolution(SPACE, Random(3), size, sample)
    scores = iter([0.3, 0.5, 0.1, 0.4, 0.2])
    asked(evolution, size, lambda _: next(scores))
    drawn = Counter(evolution.draw_parent().score for _ in range(number))
    for rank, score in enumerate((0.5, 0.4, 0.3, 0.2, 0.1), 1):
        chance = ((size - rank + 1) ** sample - (size - rank) ** sample) / size**sample
        error = (chance * (1 - chance) / number) ** 0.5
        assert abs(drawn[score] / number - chance) < 4 * error


def test_a_child_is_one_edit_from_its_parent() -> None:
    evolution = Evolution(SPACES["darts"], Random(4), 4, 2)
    history = asked(evolution, 30)
    assert [one.parent for one in history[:4]] == [None] * 4
    for number, child in enumerate(history[4:], 5):
        assert number - 4 <= child.parent < number, "a parent is in the population"
        assert edit_distance(child.genotype, history[child.parent - 1].genotype) == 1


def test_it_climbs() -> None:
    def skips(genotype) -> float:  # pyright: ignore
        return sum(op.label == "skip" for op in genotype.normal.operations) / 6

    evolution = Evolution(SPACE, Random(5), 10, 10)
    asked(evolution, 300, skips)
    assert evolution.best is not None
    assert evolution.best.score == 1

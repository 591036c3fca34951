"""Local search: to better neighbours, then from another start, and no cell twice."""

from random import Random
from typing import Any, Literal

import pytest

from prnas.searchers.cells import CellSpace
from prnas.searchers.local_search import LocalSearch
from prnas.space.analysis.distance import edit_distance
from prnas.space.genotype import Genotype
from prnas.space.operations import Conv, Skip
from prnas.space.shape import CellShape
from tests.support.made_scores import SPACES, asked, score_of

SPACE = SPACES["nasbench201"]


def textbook(space: CellSpace, starts: list[Genotype]) -> list[Genotype]:
    """The cells that steepest ascent stands at, from each of these starts."""
    stood: list[Genotype] = []
    for start in starts:
        here = start
        while True:
            stood.append(here)
            neighbours = [edit.apply(here) for edit in space.edits(here)]
            best = max(neighbours, key=score_of)
            if score_of(best) <= score_of(here):
                break
            here = best
    return stood


def test_it_goes_where_steepest_ascent_goes() -> None:
    search = LocalSearch(SPACE, Random(1))
    stood: list[Genotype] = []
    starts: list[Genotype] = []
    for _ in range(400):
        cell, proposal = search.ask(), search.proposal
        if proposal.parent is None:
            starts.append(cell)
        if search.here is not None and (not stood or stood[-1] != search.here.genotype):
            stood.append(search.here.genotype)
        search.tell(cell, score_of(cell))
    assert len(starts) > 3
    assert stood == textbook(SPACE, starts)[: len(stood)]
    assert search.num_optima == len(starts) - 1


@pytest.mark.parametrize("move", ["best", "first"])
def test_no_cell_is_asked_for_twice(move: Literal["best", "first"]) -> None:
    history = asked(LocalSearch(SPACE, Random(2), move), 500)
    cells = [one.genotype for one in history]
    assert len(set(cells)) == 500
    for one in history:
        if one.parent is not None:
            assert edit_distance(one.genotype, cells[one.parent - 1]) == 1


def test_the_first_better_neighbour_is_enough() -> None:
    search = LocalSearch(SPACE, Random(3), "first")
    scores = iter([0.5, 0.4, 0.6, 0.3])
    first, _, third, fourth = asked(search, 4, lambda _: next(scores))
    assert third.parent == 1
    assert fourth.parent == 3, "it stands at the third by now"
    assert edit_distance(first.genotype, third.genotype) == 1


def test_it_goes_on_when_all_cells_are_known() -> None:
    space = CellSpace.uniform((Skip(), Conv(3)), 1, CellShape(("normal",), 2, "two"))
    history: list[Any] = asked(LocalSearch(space, Random(4)), 12)
    assert len({one.genotype for one in history[:4]}) == 4
    assert len({one.genotype for one in history}) == 4

"""Cells are drawn uniformly, and an edit changes exactly one place of one."""

from collections import Counter
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.searchers.cells import CellSpace
from prnas.space.analysis.distance import edit_distance
from prnas.space.analysis.sampling import random_genotype
from prnas.space.genotype import Genotype
from prnas.space.morphisms import morphs
from prnas.space.nasbench201.cells import NUM_CELLS, genotype_of
from prnas.space.operations import Conv, Pool, Skip, Zero
from prnas.space.pools import Pools
from prnas.space.setting import SETTINGS, Limits
from prnas.space.shape import CellShape, Role
from tests.support.made_scores import POOL, SPACE201, SPACES
from tests.support.strategies import seeds

spaces = st.sampled_from(list(SPACES.values()))


@given(seeds, st.integers(1, 5))
def test_cells_are_those_of_random_genotypes(seed: int, num_nodes: int) -> None:
    space = CellSpace.uniform(POOL, num_nodes)
    assert space.draw(Random(seed)) == random_genotype(POOL, Random(seed), num_nodes)


def test_all_choices_are_drawn_equally_often() -> None:
    """A chi-square test of every operation and of every pair of inputs; 1 % by chance."""
    generator, number = Random(3), 3000
    cells = [SPACES["darts"].draw(generator).cell("reduction") for _ in range(number)]
    for node in range(3):
        pairs = Counter(tuple(edge.input for edge in cell.nodes[node]) for cell in cells)
        expected = number / len(pairs)
        assert len(pairs) == (1, 3, 6)[node]
        squares = sum((count - expected) ** 2 / expected for count in pairs.values())
        assert squares < (0.1, 9.2, 15.1)[node]
        for slot in range(2):
            ops = Counter(cell.nodes[node][slot].op for cell in cells)
            assert set(ops) == set(POOL) - {Zero()}
            assert sum((count - number / 3) ** 2 / (number / 3) for count in ops.values()) < 9.2


@given(spaces, seeds, st.sampled_from(["edits", "morphisms"]))
def test_a_child_differs_in_exactly_one_place(space: CellSpace, seed: int, mutation: str) -> None:
    generator = Random(seed)
    cell = space.draw(generator)
    for _ in range(5):
        child = space.mutated(cell, generator, mutation)  # pyright: ignore
        assert edit_distance(cell, child) == 1
        assert child.cell("normal").concat == cell.cell("normal").concat
        if mutation == "edits":
            assert space.holds(child)
        cell = child


def changed_role(parent: Genotype, child: Genotype) -> Role:
    changed: list[Role] = [one for one in child.roles if child.cell(one) != parent.cell(one)]
    assert len(changed) == 1
    return changed[0]


def test_mutations_reach_inputs_and_operations_of_both_cells_alike() -> None:
    space, generator, number = SPACES["darts"], Random(0), 4000
    cell = space.draw(generator)
    changed: Counter[tuple[str, bool]] = Counter()
    for _ in range(number):
        child = space.mutated(cell, generator)
        role = changed_role(cell, child)
        before, after = (
            [[edge.input for edge in node] for node in one.cell(role).nodes]
            for one in (cell, child)
        )
        changed[role, before != after] += 1
    assert all(abs(count / number - 0.25) < 0.03 for count in changed.values())
    assert len(changed) == 4


def test_all_neighbours_in_nasbench201_are_24_of_one_edge() -> None:
    cell = genotype_of(4711)
    neighbours = [edit.apply(cell) for edit in SPACE201.edits(cell)]
    every = {genotype_of(index) for index in range(0, NUM_CELLS, 7)}
    assert len(set(neighbours)) == 24
    assert {one for one in every if edit_distance(cell, one) == 1} <= set(neighbours)


@given(seeds)
def test_neighbours_are_all_cells_at_distance_one(seed: int) -> None:
    """In a space small enough to list all its cells."""
    shape = CellShape(("normal",), 2, "two")
    space = CellSpace.uniform((Skip(), Conv(3)), 2, shape)
    cell = space.draw(Random(seed))
    neighbours = {edit.apply(cell) for edit in space.edits(cell)}
    every: set[Genotype] = set()
    generator = Random(1)
    while len(every) < 4 * 3 * 4:
        every.add(space.draw(generator))
    differing = {
        one
        for one in every
        if sum(
            len(set(mine) - set(theirs))
            for mine, theirs in zip(one.normal.nodes, cell.normal.nodes, strict=True)
        )
        == 1
    }
    # An edge whose input and operation are both others takes two edits.
    assert neighbours <= differing
    assert {one for one in differing - neighbours if edit_distance(one, cell) == 1} == set()


def test_morphisms_lead_to_operations_beyond_the_pool() -> None:
    limits = Limits(3, 5, 1, 0, 1)
    space = CellSpace.uniform((Skip(), Conv(3)), 1, limits=limits)
    cell, generator = space.draw(Random(1)), Random(2)
    seen: set[str] = set()
    for _ in range(300):
        parent, cell = cell, space.mutated(cell, generator, "morphisms")
        role = changed_role(parent, cell)
        pairs = zip(parent.cell(role).operations, cell.cell(role).operations, strict=True)
        ((old, new),) = [(old, new) for old, new in pairs if old != new]
        assert new in (Skip(), Conv(3), *(child for _, child in morphs(old, limits)))
        seen.add(f"{old.label} to {new.label}")
    words = ("skip", "conv 3x3", "conv 5x5")
    expected = {f"{a} to {b}" for a, b in product(words, words) if a != b}
    assert seen == expected - {"skip to conv 5x5"}


def test_a_supernet_holds_the_candidates_of_its_pools() -> None:
    pools = Pools.initial(2, (Zero(), Skip(), Pool("avg", 3)))
    space = CellSpace.of_pools(pools)
    assert space == CellSpace.uniform((Skip(), Pool("avg", 3)), 2)
    assert space.holds(space.draw(Random(0)))
    assert not space.holds(SPACES["darts"].draw(Random(0)))
    assert not space.holds(SPACE201.draw(Random(0)))
    with pytest.raises(ValueError, match="state 2 of the normal cell has too few edges"):
        CellSpace.uniform((Zero(),), 2)


def test_where_nothing_can_change_nothing_does() -> None:
    space = CellSpace.uniform((Skip(),), 1)
    cell = space.draw(Random(0))
    assert space.edits(cell) == []
    assert space.mutated(cell, Random(0)) == cell


def test_a_setting_of_the_paper_has_mutations_within_its_limits() -> None:
    setting = SETTINGS["darts-like"]
    space = CellSpace.uniform(setting.initial_pool, 4, limits=setting.limits)
    generator = Random(5)
    cell = space.draw(generator)
    for _ in range(200):
        cell = space.mutated(cell, generator, "morphisms")
        assert all(setting.limits.allows(op) for op in cell.normal.operations)

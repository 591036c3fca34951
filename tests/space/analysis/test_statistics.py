from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.space.analysis import statistics
from prnas.space.analysis.statistics import (
    average_statistics,
    cell_statistics,
    edge_statistics,
    kernel_shares,
    mean_statistics,
    pool_similarity,
    type_shares,
)
from prnas.space.change import CellChange, Change
from prnas.space.edge_pool import EdgePool
from prnas.space.operations import Conv, Operation, Pool, Skip, Zero
from prnas.space.pools import CellPools, Pools
from prnas.space.setting import INITIAL_POOL, SETTINGS, Setting
from tests.support.strategies import evolved_pools, operations, random_weights

NO_CHANGE = CellChange(())


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (Conv(3), Skip(), 0),
        (Pool("max"), Conv(3), 0),
        (Skip(), Zero(), 0),
        (Skip(), Skip(), 1),
        (Pool("max", 3), Pool("avg", 3), 2 / 3),
        (Pool("max", 3), Pool("avg", 5), 1 / 3),
        (Conv(3), Conv(3), 1),
        (Conv(3), Conv(5), 3 / 4),
        (Conv(3), Conv(5, 2), 2 / 4),
        (Conv(3), Conv(5, 2, (1,)), 1 / 4),
        (Conv(3, 1, (1,)), Conv(3, 1, (1, 2)), 3.5 / 4),
        (Conv(3, 1, (2, 1)), Conv(3, 1, (1, 1)), (3 + 2 / 3) / 4),  # one place, and the depth
        (Conv(3, 1, (2,)), Conv(3, 1, (1,)), 3.5 / 4),  # the depth alone
        (Conv(3, 1, (1, 2)), Conv(3, 1, (1, 2, 5)), (3 + 2 / 3) / 4),  # all places of the smaller
        (Conv(3, 1, (2, 1)), Conv(3, 1, (1,)), 3 / 4),  # places are counted from the first
    ],
)
def test_similarity_of_two(one: Operation, other: Operation, expected: float) -> None:
    assert one.similarity(other) == pytest.approx(expected)
    assert other.similarity(one) == one.similarity(other)


@given(operations, operations)
def test_similarity_is_one_only_for_equals(one: Operation, other: Operation) -> None:
    assert 0 <= one.similarity(other) <= 1
    assert (one.similarity(other) == 1) == (one == other)


def test_of_the_initial_pool() -> None:
    assert type_shares(INITIAL_POOL) == {"conv": 0.25, "pool": 0.5, "skip": 0.25, "zero": 0}
    assert kernel_shares(INITIAL_POOL) == {3: 1.0}
    assert pool_similarity(INITIAL_POOL) == pytest.approx((4 + 2 * 2 / 3) / 16)  # the paper's 0.33
    assert pool_similarity([Conv(3)]) == 1
    assert pool_similarity([]) is None
    assert kernel_shares([Skip()]) == {}


@given(st.lists(operations, min_size=1, max_size=8, unique=True))
def test_shares_add_up(held: list[Operation]) -> None:
    assert sum(type_shares(held).values()) == pytest.approx(1)
    kernels = kernel_shares(held)
    assert not kernels or sum(kernels.values()) == pytest.approx(1)


def test_an_own_category_is_named_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pool, "category", "own")
    monkeypatch.setattr(statistics, "CATEGORIES", ("conv", "pool", "skip", "zero", "own"))
    without = CellPools(1, (EdgePool.initial((Skip(),)),) * 2)
    half = CellPools(1, (EdgePool.initial((Skip(), Pool("max"))),) * 2)
    shares = {"conv": 0, "pool": 0, "skip": 1, "zero": 0}
    assert cell_statistics(without).types == shares
    assert cell_statistics(half).types == {**shares, "skip": 0.5, "own": 0.5}
    assert average_statistics(Pools(without, half)).types == {**shares, "skip": 0.75, "own": 0.25}


@given(evolved_pools())
def test_a_cell_is_the_sum_of_its_edges(evolved: tuple[Setting, CellPools]) -> None:
    _, cell = evolved
    whole = cell_statistics(cell)
    edges = [edge_statistics(pool) for pool in cell.edges]
    sizes = [edge.num_candidates for edge in edges]
    convs = sum(edge.types["conv"] * edge.num_candidates for edge in edges)
    assert whole.types["conv"] == pytest.approx(convs / sum(sizes))
    assert whole.similarity == pytest.approx(mean_statistics(edges).similarity)
    assert whole.num_discovered <= sum(edge.num_discovered for edge in edges)
    average = average_statistics(Pools(cell, cell), Change(NO_CHANGE, NO_CHANGE))
    assert average.parent_probability is None
    assert average.types == pytest.approx(whole.types)
    assert average.kernels == pytest.approx(whole.kernels)


def test_parents_and_discoveries_of_a_replacement() -> None:
    setting, generator = SETTINGS["darts-like"], Random(0)
    cell = CellPools.initial(4, setting.initial_pool)
    assert cell_statistics(cell).parent_probability is None
    after, change = cell.evolve(random_weights(cell, generator), 3, 3, setting.limits, generator)
    statistics = cell_statistics(after, change)
    drawn = [one.parent_probability for edge in change.edges for one in edge.added]
    assert statistics.parent_probability == pytest.approx(sum(drawn) / len(drawn))
    both = average_statistics(Pools(after, after), Change(change, change))
    assert both.parent_probability == pytest.approx(statistics.parent_probability)
    # Kernel and dilation grown, expansion inserted, each from conv 3x3; then nothing else fits.
    discovered = {op for pool in after.edges for op in pool.ever_held}
    assert discovered == {*INITIAL_POOL, Conv(5), Conv(3, 2), Conv(3, 1, (1,))}
    assert statistics.num_discovered == 7

from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prnas
from prnas.config import recipes
from prnas.config.search import SearchConfig
from prnas.runs.events import StepEvent
from prnas.runs.named import config_of
from prnas.runs.records import CycleRecord
from prnas.runs.time_left import seconds_left, speed_of
from prnas.searching.search import Search
from prnas.searching.time_left import pool_costs, work_of_epochs
from prnas.space.edge_pool import EdgePool
from prnas.space.operations import Conv, Pool, Skip
from prnas.space.pools import Pools
from tests.support.settings import small_config
from tests.support.synthetic_search import quick

amounts = st.floats(1e-3, 1e6)
done = st.lists(st.tuples(amounts, amounts), min_size=1, max_size=30)


@pytest.mark.parametrize(
    ("work_done", "work_left", "expected"),
    [
        ([], 5.0, None),
        ([(0.0, 3.0)], 5.0, None),  # nothing done yet
        ([], 0.0, 0.0),
        ([(2.0, 4.0)], 5.0, 10.0),
        ([(2.0, 4.0), (1.0, 2.0)], 5.0, 10.0),  # equally fast
        ([(1.0, 1.0), (1.0, 2.0)], 1.75, 0.75 + 2.0),  # the latest counts most
        ([(1.0, 1.0)], -1.0, 0.0),
    ],
)
def test_examples(
    work_done: list[tuple[float, float]], work_left: float, expected: float | None
) -> None:
    assert seconds_left(work_done, work_left) == expected


@given(done, amounts, st.floats(0.01, 100))
def test_it_is_linear_in_speed_and_in_work(
    work_done: list[tuple[float, float]], left: float, factor: float
) -> None:
    estimate = seconds_left(work_done, left)
    assert estimate is not None
    assert estimate > 0
    slower = [(work, factor * seconds) for work, seconds in work_done]
    assert seconds_left(slower, left) == pytest.approx(factor * estimate)
    assert seconds_left(work_done, factor * left) == pytest.approx(factor * estimate)
    rates = [seconds / work for work, seconds in work_done]
    assert min(rates) * left * 0.999 <= estimate <= max(rates) * left * 1.001


@pytest.mark.parametrize("speed", [1e-3, 0.7, 3e5])
@pytest.mark.parametrize("name", recipes.names("search"))
def test_at_a_steady_speed_it_counts_down_to_nothing(speed: float, name: str) -> None:
    config = config_of(name, ["data.name=digits"], SearchConfig)
    works = [one for cycle in work_of_epochs(config) for one in cycle]
    finished = [(work, work * speed) for work in works]
    estimates = [seconds_left(finished[:n], sum(works[n:])) for n in range(1, len(works) + 1)]
    assert estimates[-1] == 0
    known = [one for one in estimates if one is not None]
    assert known == sorted(known, reverse=True)
    assert known[0] == pytest.approx(speed * sum(works[1:]))


def work(config: SearchConfig, cycle: int) -> list[float]:
    found = work_of_epochs(config)[cycle]
    assert len(found) == config.schedule.cycles[cycle].epochs
    assert all(one > 0 for one in found)
    return found


def test_what_an_epoch_costs() -> None:
    config = quick()
    first = work(config, 0)
    assert first[1] / first[0] == pytest.approx((1 + 0.5 + 0.15) / 1.15)  # grace, then both
    assert first[1] == first[2]
    rarely = quick("validation.epochs=last-five", "schedule.cycles.0.epochs=7")
    assert work(rarely, 0)[1] < work(rarely, 0)[2]
    assert sum(work(quick("network.channels=16"), 0)) == pytest.approx(2 * sum(first))
    assert sum(work(quick("schedule.cycles.0.cells=6"), 0)) == pytest.approx(2 * sum(first))
    assert work(quick("schedule.cycles.1.cells=6"), 0) == first


def test_what_pools_cost() -> None:
    costs = pool_costs(quick())
    assert len(costs) == 9
    assert costs[:5] == sorted(costs[:5])  # more convolutions, and deeper ones
    assert costs[5:] == sorted(costs[5:], reverse=True)  # then only pruning
    # Without a convolution nothing is born, and pools only shrink.
    without = pool_costs(quick("space.initial_pool=[max 3x3, avg 3x3, skip]"))
    assert without[:8] == pytest.approx([0.35] * 8)
    assert 0.1 < without[8] < 0.35
    assert all(cost > 0 for cost in pool_costs(config_of("unrestricted", (), SearchConfig)))


def test_pools_cost_about_what_they_did_in_searches() -> None:
    """Five searches by `quick`: the cost of their pools in each cycle, from least to largest."""
    seen = [
        *[(1.35, 1.35), (5.22, 5.25), (5.72, 6.05), (6.53, 7.56), (7.03, 8.27), (7.74, 9.14)],
        *[(4.63, 5.78), (3.32, 4.23), (2.27, 2.91)],
    ]
    for cost, (least, most) in zip(pool_costs(quick()), seen, strict=True):
        assert 0.9 * least <= cost <= 1.1 * most


def test_known_pools_are_taken_as_they_are() -> None:
    config = quick()
    dear = EdgePool.initial([Conv(7, expansions=(1,)), Conv(5, expansions=(1,)), Skip()])
    cheap = EdgePool.initial([Conv(3), Pool("max", 3), Skip()])
    costs = pool_costs(config, 4, [dear] * 10 + [cheap] * 10)
    assert len(costs) == 5
    assert costs[0] == pytest.approx(
        (sum(op.cost for op in dear.candidates) + sum(op.cost for op in cheap.candidates)) / 2
    )
    assert pool_costs(config, 4, [dear] * 20)[1] > pool_costs(config, 4, [cheap] * 20)[1]
    assert work_of_epochs(config, 4, [dear] * 20) > work_of_epochs(config, 4, [cheap] * 20)
    assert pool_costs(config, 8, [cheap]) == [sum(op.cost for op in cheap.candidates)]


def test_a_slow_first_step_does_not_spoil_the_estimate() -> None:
    assert speed_of(8.0, 0.5, 107.0, (0.25, 100.0)) == (2.0, 7.0)
    assert speed_of(8.0, 0.5, 7.0, (0.0, 0.0)) == (4.0, 7.0)
    assert speed_of(8.0, 0.25, 100.0, (0.25, 100.0)) == (2.0, 100.0)  # there is no other


class Works(prnas.Callback):
    """Whether there is always an estimate, and what the cycles' pools cost."""

    def __init__(self) -> None:
        self.pools: list[float] = []

    def on_step(self, step: StepEvent) -> None:
        assert step.seconds_left is not None

    def on_cycle(self, record: CycleRecord, pools: Pools) -> None:
        edges = [edge for role in pools.roles for edge in pools.cell(role).edges]
        self.pools.append(fmean(sum(op.cost for op in edge.candidates) for edge in edges))


def test_a_search_knows_what_its_pools_cost(images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[list[float]] = []
    plan = Search.epoch_work

    def watched(search: Search) -> list[float]:
        planned.append(plan(search))
        return planned[-1]

    monkeypatch.setattr(Search, "epoch_work", watched)
    config, works = small_config(images), Works()
    prnas.search(config, callbacks=[works])
    assert [len(work) for work in planned] == [5, 5, 5]  # at the start of each cycle
    assert planned[2][:4] == [0.0] * 4  # what is over
    assert planned[0] == [epoch for cycle in work_of_epochs(config) for epoch in cycle]
    inputs, edges = 2.0, 2
    expected = planned[0][2] / (edges * pool_costs(config)[1] + inputs)
    assert planned[1][2] / (edges * works.pools[0] + inputs) == pytest.approx(expected)

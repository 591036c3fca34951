import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.config import recipes
from prnas.config.search import SearchConfig
from prnas.runs.named import config_of
from prnas.runs.run import seconds_left
from prnas.searching.time_left import epoch_work, pool_costs
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
    works = [
        one for cycle in range(len(config.schedule.cycles)) for one in epoch_work(config, cycle)
    ]
    finished = [(work, work * speed) for work in works]
    estimates = [seconds_left(finished[:n], sum(works[n:])) for n in range(1, len(works) + 1)]
    assert estimates[-1] == 0
    known = [one for one in estimates if one is not None]
    assert known == sorted(known, reverse=True)
    assert known[0] == pytest.approx(speed * sum(works[1:]))


def work(config: SearchConfig, cycle: int) -> list[float]:
    found = epoch_work(config, cycle)
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
    assert without == pytest.approx([0.35] * 8 + [0.7 / 3])
    assert all(cost > 0 for cost in pool_costs(config_of("unrestricted", (), SearchConfig)))

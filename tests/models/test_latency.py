"""Latencies: how they are measured. No test looks at how long anything takes."""

from collections.abc import Callable

import pytest
import torch

from prnas.models.latency import (
    MOST_CALLS,
    NETWORKS,
    WARM_UP_CALLS,
    measure_in_turns,
    measure_latencies,
    num_samples,
    sized_operations,
)
from prnas.space.costs import Costs
from prnas.space.final_network import FinalNetwork
from prnas.space.latency import key
from prnas.space.operations import Conv, Pool, Skip, Zero
from prnas.space.shape import NASBENCH201

NETWORK = FinalNetwork(channels=4, cells=3, classes=3, height=8, width=8, nodes=2, states=2)


class Machine:
    """A clock that calls move on, by the next of their times or by the last one."""

    def __init__(self) -> None:
        self.now, self.log = 0, ""

    def call(self, name: str, *times: int) -> Callable[[], None]:
        left = list(times)

        def called() -> None:
            self.log += name
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return called


def test_calls_take_turns_and_the_median_counts() -> None:
    machine = Machine()
    slow = 1_000_000
    warm = [9 * slow] * (WARM_UP_CALLS + 1)  # what is slow at first does not count
    a = machine.call("a", *warm, slow, 5 * slow, slow, 2 * slow, slow)
    b = machine.call("b", 3 * slow)
    heard: list[None] = []
    found = measure_in_turns(
        [a, b], 5, clock=lambda: machine.now, advance=lambda: heard.append(None)
    )
    before = WARM_UP_CALLS + 1
    assert machine.log == "a" * before + "b" * before + "ab" * 5
    assert len(heard) == 10
    assert [one.median for one in found] == [slow, 3 * slow]
    assert [one.repeats for one in found] == [5, 5]
    assert (found[0].lower_quartile, found[0].upper_quartile) == (slow, 2 * slow)


def test_short_calls_are_timed_several_at_a_time() -> None:
    machine = Machine()
    calls = [machine.call("a", 50_000), machine.call("b", 0)]
    found = measure_in_turns(calls, 2, clock=lambda: machine.now)
    assert machine.log.endswith(("a" * 4 + "b" * MOST_CALLS) * 2)
    assert [one.median for one in found] == [50_000, 0]


def test_every_place_of_a_network_is_measured_once() -> None:
    found = sized_operations(NETWORK, [Conv(3), Zero()])
    names = [key(*place) for place in found]
    assert len(set(names)) == len(names)
    assert sorted(names) == sorted(
        f"{label} @ {where}"
        for label in ("conv 3x3", "skip")
        for where in ("4x8x8 /1", "8x8x8 /2", "8x4x4 /1", "16x4x4 /2", "16x2x2 /1")
    )
    assert num_samples(NETWORK, [Conv(3), Zero()], 3) == 3 * (10 + 1 + NETWORKS)


@pytest.mark.parametrize(
    ("network", "output"),
    [
        (NETWORK, "concat"),
        (FinalNetwork(4, 3, 3, "cifar", "last", 1, 8, 8, 3, 1, NASBENCH201), "last"),
    ],
)
def test_a_table_tells_of_any_network_of_the_search(network: FinalNetwork, output: str) -> None:
    candidates = [Conv(3), Pool("max"), *([Zero()] if network.shape == NASBENCH201 else [])]
    file = measure_latencies(
        network,
        candidates,
        torch.device("cpu"),
        output=output,  # pyright: ignore[reportArgumentType]
        repeats=2,
    )
    table = file.table
    assert set(table.operations) == set(file.measured)
    assert set(table.operations) == {key(*place) for place in sized_operations(network, candidates)}
    assert all(one.repeats == 2 for one in file.measured.values())
    assert len(file.checks) == NETWORKS
    costs = Costs(network, table)
    for op in (*candidates, Skip()):
        for role in network.shape.roles:
            assert costs.of(role, 0, op).latency >= 0
    # The sum for a network of skips is what was measured, unless that was less than its skips.
    assert table.around >= 0

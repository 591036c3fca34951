"""Measuring speed, with a clock that stands still but for the calls."""

import pytest

from prnas.models.speed import LEAST_CALLS, MOST_CALLS, SECONDS, WARM_UP_SECONDS, measure


class Device:
    """Answers at once, and is done only when it is waited for, as a GPU is."""

    def __init__(self, *seconds: float) -> None:
        self.seconds = seconds
        self.now, self.calls, self.waiting = 100.0, 0, 0.0

    def call(self) -> None:
        assert self.waiting == 0, "the call before is still under way"
        self.waiting = self.seconds[self.calls % len(self.seconds)]
        self.calls += 1

    def synchronize(self) -> None:
        self.now += self.waiting
        self.waiting = 0.0

    def clock(self) -> float:
        return self.now


def test_calls_are_timed_to_their_end() -> None:
    device = Device(0.01)
    found = measure(device.call, 8, device.synchronize, device.clock)
    assert found.batch == 8
    assert found.median_seconds == pytest.approx(0.01)
    assert found.images_per_second == pytest.approx(800)
    assert found.calls == pytest.approx(SECONDS / 0.01, abs=1)
    assert device.calls - found.calls == pytest.approx(WARM_UP_SECONDS / 0.01, abs=1)


def test_quick_and_slow_calls_are_bounded() -> None:
    quick = Device(0.0001)
    assert measure(quick.call, 1, quick.synchronize, quick.clock).calls == MOST_CALLS
    slow = Device(20.0)
    assert measure(slow.call, 1, slow.synchronize, slow.clock).calls == LEAST_CALLS
    assert slow.calls == LEAST_CALLS + 1


def test_median_quartiles_and_extremes() -> None:
    device = Device(0.5, 0.1, 0.2, 0.3, 0.4, 0.5)  # the first one warms up
    found = measure(device.call, 1, device.synchronize, device.clock)
    assert (found.calls, device.calls) == (5, 6)
    numbers = (
        *(found.least_seconds, found.lower_quartile_seconds, found.median_seconds),
        *(found.upper_quartile_seconds, found.most_seconds),
    )
    assert numbers == pytest.approx((0.1, 0.2, 0.3, 0.4, 0.5))
    assert found.to_json()["images_per_second"] == pytest.approx(1 / 0.3)

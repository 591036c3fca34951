"""The speed of a network on this device: a call is repeated, and each timed to its end."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import quantiles
from typing import Any

import torch

WARM_UP_SECONDS, SECONDS = 0.3, 1.5
LEAST_CALLS, MOST_CALLS = 5, 300


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds of a call with a batch: the median of all calls, their quartiles and extremes."""

    batch: int
    calls: int
    median_seconds: float
    lower_quartile_seconds: float
    upper_quartile_seconds: float
    least_seconds: float
    most_seconds: float

    @property
    def images_per_second(self) -> float:
        return self.batch / self.median_seconds

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "images_per_second": self.images_per_second}


def measure(
    call: Callable[[], object],
    batch: int,
    synchronize: Callable[[], object],
    clock: Callable[[], float] = time.perf_counter,
) -> Speed:
    """Time a call of a batch: first untimed, to warm up, then for about `SECONDS`.

    `synchronize` waits until the device is done, so that its work is timed, not only its start.
    """
    start = clock()
    while True:
        call()
        synchronize()
        if clock() - start >= WARM_UP_SECONDS:
            break
    seconds: list[float] = []
    start = clock()
    while len(seconds) < MOST_CALLS:
        before = clock()
        call()
        synchronize()
        now = clock()
        seconds.append(now - before)
        if now - start >= SECONDS and len(seconds) >= LEAST_CALLS:
            break
    lower, median, upper = quantiles(seconds, n=4, method="inclusive")
    return Speed(batch, len(seconds), median, lower, upper, min(seconds), max(seconds))


def synchronizer(device: torch.device) -> Callable[[], object]:
    """A function that waits for a device. On the CPU, a call is done when it returns."""
    if device.type == "cuda":
        return lambda: torch.cuda.synchronize(device)
    if device.type == "mps":
        return torch.mps.synchronize
    return lambda: None

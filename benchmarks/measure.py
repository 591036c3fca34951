"""Measuring fairly on a noisy machine: interleave, repeat, report medians and the spread."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def synchronize(device: str) -> None:
    """Wait until a device has done all that it was given."""
    if device != "cpu":
        torch.accelerator.synchronize(device)


def interleaved(
    ways: dict[str, Callable[[], object]], repeats: int, device: str = "cpu"
) -> dict[str, list[float]]:
    """Seconds of each way, in turns, after one turn to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeats + 1):
        for name, run in ways.items():
            start = time.perf_counter()
            run()
            synchronize(device)
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def ratio(slow: list[float], fast: list[float]) -> str:
    """The ratio of the medians, and the least and greatest of the single turns."""
    turns = [a / b for a, b in zip(slow, fast, strict=True)]
    return f"{median(slow) / median(fast):.2f} ({min(turns):.2f}-{max(turns):.2f})"


class CountCalls(TorchDispatchMode):
    """Counts operator calls, those of the backward pass included; `views` of them move no data."""

    calls = views = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.calls += 1
        self.views += func.is_view or func.overloadpacket is torch.ops.aten._unsafe_view
        return func(*args, **(kwargs or {}))


def matrix_product_flops(size: int = 2048, repeats: int = 5) -> float:
    """Floating-point operations per second of a plain matrix product: what the machine can do."""
    first, second = torch.randn(size, size), torch.randn(size, size)
    seconds = interleaved({"mm": lambda: torch.mm(first, second)}, repeats)["mm"]
    return 2 * size**3 / median(seconds)


def number_of(module: str, *arguments: str) -> float:
    """What a fresh process that runs a module says by `print_number`."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return float(json.loads(done.stdout.splitlines()[-1]))


def print_number(number: float) -> None:
    print(json.dumps(number))


def print_peak(step: Callable[[], object]) -> None:
    """Run a step; print by how many MiB the peak resident set passes its level before it."""
    level = resident("VmRSS")
    step()
    # Not `ru_maxrss`: a process inherits that from the one that started it.
    print_number(resident("VmHWM") - level)


def resident(field: str) -> float:
    """A line of Linux's process status, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 2**10 for line in lines if line.startswith(field))

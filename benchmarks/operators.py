"""Where the time of a search step goes, operator by operator, and what moving its data must cost.

For each operator: calls, seconds, the bytes of its inputs and outputs (views and allocations left
out), and the seconds that moving these bytes takes at the speed of a large copy. An operator whose
two times are close is bound by memory: only fewer bytes make it faster.

python -m benchmarks.operators [--stage DL] [--batch 64] [--way fused] [--threads 2]
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.measure import interleaved, matrix_product_flops
from benchmarks.search_step import STAGES
from benchmarks.supernet import WAYS, flops_needed, make_step

COPIED = 2**27  # bytes of the copy that measures the machine's bandwidth: larger than its caches
SHOWN = 14  # operators in the table
ALLOCATIONS = ("empty", "new_empty", "empty_like", "empty_strided", "detach")


def tensors(values: Any) -> Iterator[Tensor]:
    """All tensors in an operator's arguments or results."""
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, list | tuple):
        for value in values:  # pyright: ignore[reportUnknownVariableType]
            yield from tensors(value)


class Operators(TorchDispatchMode):
    """Counts calls, seconds and bytes of every operator, those of the backward pass included."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[str, int] = defaultdict(int)
        self.seconds: dict[str, float] = defaultdict(float)
        self.bytes: dict[str, int] = defaultdict(int)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        start = time.perf_counter()
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        self.seconds[name] += time.perf_counter() - start
        self.calls[name] += 1
        if not func.is_view and name not in ALLOCATIONS:
            touched = {value.data_ptr(): value.nbytes for value in tensors([args, result])}
            self.bytes[name] += sum(touched.values())
        return result


def bandwidth() -> float:
    """Bytes a second that a large copy reads and writes."""
    source, target = torch.ones(COPIED // 4), torch.ones(COPIED // 4)
    seconds = interleaved({"copy": lambda: target.copy_(source)}, 5)["copy"]
    return 2 * COPIED / min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--stage", choices=list(STAGES), default="DL")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--way", choices=WAYS, default="fused")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    speed, product = bandwidth(), matrix_product_flops()
    step = make_step(options.way, options.stage, options.batch)
    step()
    start = time.perf_counter()
    step()
    duration = time.perf_counter() - start
    with Operators() as counted:
        step()
    measured = sum(counted.seconds.values())
    moved = sum(counted.bytes.values())
    print(f"{options.stage}, {options.way}, batch {options.batch}, {options.threads} threads:")
    print(f"a step takes {duration:.2f} s, {measured:.2f} s of it in operators when each is timed")
    print(f"a copy moves {speed / 1e9:.1f} GB/s; operators read and write {moved / 1e9:.1f} GB:")
    print(f"at least {moved / speed:.2f} s if nothing stays in a cache")
    needed = flops_needed(options.stage) * options.batch
    print(f"a matrix product ran at {product / 1e9:.0f} GFLOP/s: {needed / product:.2f} s at best")
    print(f"\n{'operator':36}{'calls':>8}{'seconds':>9}{'share':>7}{'GB':>8}{'as a copy':>11}")
    slowest = sorted(counted.seconds, key=lambda name: -counted.seconds[name])
    for name in slowest[:SHOWN]:
        seconds, size = counted.seconds[name], counted.bytes[name]
        row = f"{name:36}{counted.calls[name]:>8}{seconds:>9.2f}{seconds / measured:>7.0%}"
        print(f"{row}{size / 1e9:>8.1f}{size / speed:>11.2f}")
    rest = slowest[SHOWN:]
    seconds = sum(counted.seconds[name] for name in rest)
    calls = sum(counted.calls[name] for name in rest)
    print(f"{f'{len(rest)} others':36}{calls:>8}{seconds:>9.2f}{seconds / measured:>7.0%}")


if __name__ == "__main__":
    main()

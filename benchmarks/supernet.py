"""The supernet against the textbook's: speed, memory and operator calls of a search step.

The textbook's is `prnas.nets.plain.Supernet`.

python -m benchmarks.supernet [--batch 64] [--repeats 3] [--stages initial DL DR UR]
"""

import argparse
from collections.abc import Callable
from statistics import median

import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.measure import (
    CountCalls,
    interleaved,
    matrix_product_flops,
    number_of,
    print_peak,
    ratio,
)
from benchmarks.search_step import STAGES, batches, our_step, stage_pools, textbook_step
from prnas.nets import plain
from prnas.nets.supernet import build_supernet

WAYS = ("textbook", "ours", "recompute")
CHANNELS, CELLS = 16, 8


def make_step(way: str, stage: str, batch: int) -> Callable[[], None]:
    pools, data = stage_pools(stage), batches(batch)
    if way == "textbook":
        return textbook_step(plain.Supernet(pools, CHANNELS, CELLS), data)
    network = build_supernet(pools, CHANNELS, CELLS, recompute=way == "recompute")
    return our_step(network, data)


def operator_calls(step: Callable[[], None]) -> int:
    with CountCalls() as counter:
        step()
    return counter.calls


def flops_needed(stage: str) -> float:
    """Floating-point operations that a step needs for one image, as the textbook computes it.

    The forward pass is counted by PyTorch's counter; a backward pass needs as much again for the
    gradients of activations, and for those of weights (which only the weight step needs). The
    counter itself overstates the backward pass of depthwise convolutions.
    """
    network = plain.Supernet(stage_pools(stage), CHANNELS, CELLS).eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network(torch.randn(1, 3, 32, 32))
    return (2 + 3) * counter.get_total_flops()


def peak(way: str, stage: str, batch: int) -> float:
    """MiB that a step takes, as told by a fresh process."""
    return number_of("benchmarks.supernet", "--peak", way, "--stages", stage, "--batch", str(batch))


def report(stage: str, batch: int, repeats: int) -> None:
    product = matrix_product_flops()
    steps = {way: make_step(way, stage, batch) for way in WAYS}
    seconds = interleaved(dict(steps), repeats)
    speed = {way: batch / median(times) for way, times in seconds.items()}
    share = flops_needed(stage) * speed["ours"] / product
    del steps
    memory = {way: [peak(way, stage, batch) for _ in range(repeats)] for way in WAYS}
    calls = {way: operator_calls(make_step(way, stage, 2)) for way in WAYS}
    print(f"\n{stage}: batch {batch}, {repeats} turns; medians (least-greatest of single turns)")
    print(f"{'':12}{'images/s':>10}{'faster than textbook':>26}{'MiB':>8}{'less':>18}{'calls':>9}")
    for way in WAYS:
        faster = ratio(seconds["textbook"], seconds[way])
        less = ratio(memory["textbook"], memory[way])
        size = median(memory[way])
        print(f"{way:12}{speed[way]:>10.2f}{faster:>26}{size:>8.0f}{less:>18}{calls[way]:>9}")
    print(f"recomputation takes {ratio(seconds['recompute'], seconds['ours'])} times as long")
    print(f"a matrix product ran at {product / 1e9:.0f} GFLOP/s just before; ours does the", end="")
    print(f" arithmetic that is needed at {share:.0%} of that", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--stages", nargs="+", choices=list(STAGES), default=list(STAGES))
    parser.add_argument("--peak", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.peak:
        print_peak(make_step(options.peak, options.stages[0], options.batch))
        return
    print(f"{CELLS} cells, {CHANNELS} channels, 32x32, {options.threads} threads, PyTorch", end=" ")
    print(torch.__version__)
    for stage in options.stages:
        report(stage, options.batch, options.repeats)


if __name__ == "__main__":
    main()

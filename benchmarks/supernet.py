"""The supernet against the textbook's: speed, memory and operator calls of a search step.

The textbook's is `prnas.nets.plain_supernet.Supernet`. `fused` and `plain` are the two ways to
compute ours, `recompute` is fused with recomputation, and in `sampled` one candidate of each edge
is active.

python -m benchmarks.supernet [--batch 64] [--repeats 3] [--stages initial DL DR UR] [--device cuda]
    [--ways fused recompute] [--times-only]
"""

import argparse
from collections.abc import Callable
from random import Random
from statistics import median

import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.measure import (
    CountCalls,
    interleaved,
    matrix_product_flops,
    number_of,
    print_number,
    print_peak,
    ratio,
    synchronize,
)
from benchmarks.search_step import STAGES, batches, our_step, stage_pools, textbook_step
from prnas.nets import plain_supernet
from prnas.nets.supernet import build_supernet

WAYS = ("textbook", "fused", "recompute", "plain", "sampled")
CHANNELS, CELLS = 16, 8


def make_step(way: str, stage: str, batch: int, device: str = "cpu") -> Callable[[], None]:
    pools = stage_pools(stage)
    first, second = ((images.to(device), labels.to(device)) for images, labels in batches(batch))
    if way == "textbook":
        return textbook_step(
            plain_supernet.Supernet(pools, CHANNELS, CELLS).to(device), (first, second)
        )
    network = build_supernet(
        pools,
        CHANNELS,
        CELLS,
        recompute=way == "recompute",
        execution="plain" if way == "plain" else "fused",
    )
    sample = Random(0) if way == "sampled" else None
    return our_step(network.to(device), (first, second), sample)


def operator_calls(step: Callable[[], None]) -> str:
    with CountCalls() as counter:
        step()
    return f"{counter.calls} / {counter.calls - counter.views}"


def flops_needed(stage: str) -> float:
    """Floating-point operations that a step needs for one image, as the textbook computes it.

    The forward pass is counted by PyTorch's counter; a backward pass needs as much again for the
    gradients of activations, and for those of weights (which only the weight step needs). The
    counter itself overstates the backward pass of depthwise convolutions.
    """
    network = plain_supernet.Supernet(stage_pools(stage), CHANNELS, CELLS).eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network(torch.randn(1, 3, 32, 32))
    return (2 + 3) * counter.get_total_flops()


def peak(way: str, stage: str, batch: int, device: str) -> float:
    """MiB that a step takes, measured in a fresh process."""
    arguments = ("--stages", stage, "--batch", str(batch), "--device", device)
    return number_of("benchmarks.supernet", "--peak", way, *arguments)


def print_device_peak(step: Callable[[], None], device: str) -> None:
    """What `print_peak` does, for the memory of an accelerator."""
    before = torch.accelerator.memory_allocated(device)
    step()
    synchronize(device)
    print_number((torch.accelerator.max_memory_allocated(device) - before) / 2**20)


def report(
    stage: str, batch: int, repeats: int, device: str, ways: list[str], times_only: bool
) -> None:
    product = matrix_product_flops() if device == "cpu" else None
    steps: dict[str, Callable[[], None]] = {}
    for way in ways:
        step = make_step(way, stage, batch, device)
        try:
            step()
        except NotImplementedError as error:  # a kernel that the device does not have
            print(f"{stage}: {way} cannot run on {device}: {str(error).splitlines()[0]}")
        else:
            steps[way] = step
    seconds = interleaved(dict(steps), repeats, device)
    speed = {way: batch / median(times) for way, times in seconds.items()}
    print(f"\n{stage}: batch {batch}, {repeats} turns; medians (least-greatest of single turns)")
    print(f"{'':12}{'images/s':>10}{'faster than textbook':>26}")
    for way in steps:
        print(f"{way:12}{speed[way]:>10.2f}{ratio(seconds['textbook'], seconds[way]):>26}")
    if not times_only:
        print_memory_and_calls(stage, batch, repeats, device, list(steps))
    if "fused" not in steps:
        return
    if "recompute" in steps:
        print(f"recomputation takes {ratio(seconds['recompute'], seconds['fused'])} times as long")
    if "sampled" in steps:
        print(f"a sampled step takes {ratio(seconds['sampled'], seconds['fused'])} of a full one")
    if product is not None:
        share = flops_needed(stage) * speed["fused"] / product
        print(f"a matrix product ran at {product / 1e9:.0f} GFLOP/s just before; fused does the")
        print(f"arithmetic that is needed at {share:.0%} of that", flush=True)


def print_memory_and_calls(
    stage: str, batch: int, repeats: int, device: str, ways: list[str]
) -> None:
    memory = {way: [peak(way, stage, batch, device) for _ in range(repeats)] for way in ways}
    calls = {way: operator_calls(make_step(way, stage, 2, device)) for way in ways}
    print(f"{'':12}{'MiB':>10}{'less than textbook':>26}{'calls / without views':>24}")
    for way in ways:
        less = ratio(memory["textbook"], memory[way])
        print(f"{way:12}{median(memory[way]):>10.0f}{less:>26}{calls[way]:>24}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--stages", nargs="+", choices=list(STAGES), default=list(STAGES))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--times-only", action="store_true", help="no memory, no operator calls")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, mps or another of PyTorch's")
    parser.add_argument("--peak", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.peak:
        step = make_step(options.peak, options.stages[0], options.batch, options.device)
        if options.device == "cpu":
            print_peak(step)
        else:
            print_device_peak(step, options.device)
        return
    print(f"{CELLS} cells, {CHANNELS} channels, 32x32, {options.device},")
    print(f"{options.threads} threads, PyTorch {torch.__version__}")
    ways = ["textbook", *(way for way in options.ways if way != "textbook")]
    for stage in options.stages:
        report(stage, options.batch, options.repeats, options.device, ways, options.times_only)


if __name__ == "__main__":
    main()

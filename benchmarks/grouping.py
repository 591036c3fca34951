"""Does it pay to convolve for several candidates at once? Depthwise kernels of equal size.

    python -m benchmarks.grouping [--turns 5]

Separate convolutions against one call, forward and backward: with several outputs for each group,
or of an input repeated for each candidate. Processor time, one thread; above 1 the one call wins.
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.measure import ratio

# Channels, image size, batch, kernel, candidates: a supernet's first and last cells.
SHAPES = ((16, 32, 64, 3, 2), (64, 8, 64, 3, 2), (16, 32, 16, 3, 3), (64, 8, 16, 5, 2))


def ways(
    channels: int, size: int, batch: int, kernel: int, candidates: int
) -> dict[str, Callable[[], list[Tensor]]]:
    """What computes the gradients of the input and all weights, by the name of the way."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(batch, channels, size, size, generator=generator).relu_()
    x = images.contiguous(memory_format=torch.channels_last).requires_grad_()
    weights = [
        torch.randn(channels, 1, kernel, kernel, generator=generator, requires_grad=True)
        for _ in range(candidates)
    ]

    def conv(x: Tensor, weight: Tensor, groups: int) -> Tensor:
        return F.conv2d(x, weight, None, 1, kernel // 2, 1, groups)

    def separate() -> list[Tensor]:
        return [conv(x, weight, channels) for weight in weights]

    def several_outputs() -> list[Tensor]:
        return [conv(x, torch.stack(weights, 1).reshape(-1, 1, kernel, kernel), channels)]

    def repeated() -> list[Tensor]:
        return [conv(torch.cat([x] * candidates, 1), torch.cat(weights), candidates * channels)]

    def with_gradients(way: Callable[[], list[Tensor]]) -> Callable[[], list[Tensor]]:
        def run() -> list[Tensor]:
            made = way()
            gradients = [output.detach() for output in made]
            return list(torch.autograd.grad(made, [x, *weights], gradients))

        return run

    named = {"separate": separate, "several outputs": several_outputs, "repeated": repeated}
    return {name: with_gradients(way) for name, way in named.items()}


def seconds(named: dict[str, Callable[[], list[Tensor]]], turns: int) -> dict[str, list[float]]:
    """Processor time of each way, in turns, after one to warm up."""
    took: dict[str, list[float]] = {name: [] for name in named}
    for turn in range(turns + 1):
        for name, way in named.items():
            start = time.process_time()
            way()
            if turn:
                took[name].append(time.process_time() - start)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=5)
    turns = parser.parse_args().turns
    torch.set_num_threads(1)
    for shape in SHAPES:
        channels, size, batch, kernel, candidates = shape
        took = seconds(ways(*shape), turns)
        print(f"{candidates} candidates, {kernel}x{kernel}, {channels} channels, ", end="")
        print(f"{size}x{size}, batch {batch}: separate / one call")
        for name in ("several outputs", "repeated"):
            print(f"  {name:16}{ratio(took['separate'], took[name])}", flush=True)


if __name__ == "__main__":
    main()

"""The final network's training step: channels-last against plain NCHW.

python -m benchmarks.network [--batch 16] [--repeats 5] [--cells pr-darts-dl2 darts-v2]
"""

import argparse
from collections.abc import Callable
from statistics import median

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.measure import interleaved, ratio
from prnas.nets.network import build
from prnas.space import zoo


def make_step(name: str, batch: int, memory_format: torch.memory_format) -> Callable[[], None]:
    network = build(zoo.get(name), auxiliary=True)
    network.to(memory_format=memory_format)  # pyright: ignore[reportCallIssue]
    network.drop_path_probability = 0.2
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(batch, 3, 32, 32, generator=generator)
    images = images.contiguous(memory_format=memory_format)
    labels = torch.randint(10, (batch,), generator=generator)
    optimizer = torch.optim.SGD(network.parameters(), 0.025, momentum=0.9, weight_decay=3e-4)

    def step() -> None:
        logits, auxiliary = network(images, generator)
        loss = F.cross_entropy(logits, labels) + 0.4 * F.cross_entropy(auxiliary, labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    shown = ["pr-darts-dl2", "darts-v2"]
    parser.add_argument("--cells", nargs="+", choices=zoo.names(), default=shown)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"final network, 36 channels, 20 cells, batch {options.batch}, {options.threads} threads")
    for name in options.cells:
        seconds = interleaved(
            {
                "NCHW": make_step(name, options.batch, torch.contiguous_format),
                "ours": make_step(name, options.batch, torch.channels_last),
            },
            options.repeats,
        )
        speed = {way: options.batch / median(times) for way, times in seconds.items()}
        print(
            f"{name:14} NCHW {speed['NCHW']:.2f} images/s, channels-last {speed['ours']:.2f}: "
            f"{ratio(seconds['NCHW'], seconds['ours'])} times as fast"
        )


if __name__ == "__main__":
    main()

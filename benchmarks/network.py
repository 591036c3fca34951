"""The final network's training step: ours, channels-last, against the textbook's in plain NCHW.

Each turn of each way runs in a process of its own: in one process, whichever network is built
second finds its memory scattered, and is up to a third slower. The batch is the paper's. The
textbook takes PyTorch's optimizer as it comes, ours is set as `prnas retrain` sets it.

python -m benchmarks.network [--batch 96] [--repeats 5] [--cells pr-darts-dl2 darts-v2]
"""

import argparse
from collections.abc import Callable
from statistics import median

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.measure import interleaved, number_of, print_number, ratio
from prnas.nets import plain_network
from prnas.nets.network import build
from prnas.runs.state import sgd
from prnas.space import zoo

WAYS = ("textbook", "ours")


def make_step(way: str, name: str, batch: int) -> Callable[[], None]:
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(batch, 3, 32, 32, generator=generator)
    labels = torch.randint(10, (batch,), generator=generator)
    if way == "ours":
        network = build(zoo.get(name), auxiliary=True)
        network.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        images = images.contiguous(memory_format=torch.channels_last)
    else:
        network = plain_network.Network(zoo.get(name))
    network.drop_path_probability = 0.2
    parameters = list(network.parameters())
    make = sgd if way == "ours" else torch.optim.SGD
    optimizer = make(parameters, 0.025, momentum=0.9, weight_decay=3e-4)

    def step() -> None:
        logits, auxiliary = network(images)
        loss = F.cross_entropy(logits, labels) + 0.4 * F.cross_entropy(auxiliary, labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 5.0)
        optimizer.step()

    return step


def seconds_of(way: str, name: str, batch: int, threads: int) -> float:
    """Seconds of a step, measured by a fresh process."""
    arguments = ["--way", way, "--cells", name, "--batch", batch, "--threads", threads]
    return number_of("benchmarks.network", *map(str, arguments))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--batch", type=int, default=96)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    shown = ["pr-darts-dl2", "darts-v2"]
    parser.add_argument("--cells", nargs="+", choices=zoo.names(), default=shown)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.way:
        step = make_step(options.way, options.cells[0], options.batch)
        print_number(median(interleaved({"step": step}, 3)["step"]))
        return
    print(f"final network, 36 channels, 20 cells, batch {options.batch}, {options.threads} threads")
    for name in options.cells:
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(options.repeats):
            for way, turns in seconds.items():
                turns.append(seconds_of(way, name, options.batch, options.threads))
        speed = {way: options.batch / median(times) for way, times in seconds.items()}
        print(
            f"{name:14} textbook {speed['textbook']:.2f} images/s, ours {speed['ours']:.2f}: "
            f"{ratio(seconds['textbook'], seconds['ours'])} times as fast",
            flush=True,
        )


if __name__ == "__main__":
    main()

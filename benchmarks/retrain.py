"""A training's step: ours, against the textbook's network in a plain loop with a usual DataLoader.

Each turn of each way runs in a process of its own, on random images of CIFAR-10's size. The plain
loop varies its images one by one in two worker processes, as usual.

python -m benchmarks.retrain [--batch 32] [--steps 6] [--repeats 5] [--cells pr-darts-dl2 darts-v2]
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from benchmarks.measure import number_of, print_number, ratio
from prnas.config.retrain import RetrainConfig
from prnas.data.dataset import load
from prnas.nets.plain_network import Network
from prnas.retraining.retraining import Retraining
from prnas.runs.batch_size import CpuProbe
from prnas.runs.context import RunContext
from prnas.runs.processes import Processes
from prnas.space import zoo

IMAGES = 2_000


def write_images(path: Path) -> None:
    generator = np.random.default_rng(0)
    for split, number in (("train", IMAGES), ("test", 10)):
        pixels = generator.integers(0, 256, (number, 32, 32, 3), np.uint8)
        np.save(path / f"x_{split}.npy", pixels)
        np.save(path / f"y_{split}.npy", np.arange(number) % 10)


def arrays(folder: Path) -> dict[str, Any]:
    return {file.stem: np.load(file) for file in folder.glob("*.npy")}


def ours(name: str, batch: int, steps: int, threads: int, folder: Path) -> tuple[float, float]:
    """Seconds of a step, and the share of it that preparing data takes."""
    np.savez(folder / "images.npz", **arrays(folder))
    config = RetrainConfig.from_data(
        {
            "genotype": name,
            "data": {"name": f"npz:{folder / 'images.npz'}"},
            "batch": {"min": batch, "max": batch},
            "compute": {"accelerator": "cpu", "threads": threads},
        }
    )
    data = load(config.data, torch.device("cpu"))
    indices = Retraining.prepare(config, data, 1)
    processes = Processes(config.compute)
    context = RunContext(config, data, indices, processes, CpuProbe(None), None)
    run = Retraining(context)
    run.state.network.train()
    run.take_step()
    seconds: list[float] = []
    before = dict(run.state.epoch.seconds)
    for _ in range(steps):
        start = time.perf_counter()
        run.take_step()
        seconds.append(time.perf_counter() - start)
    spent = {category: run.state.epoch.seconds[category] - before[category] for category in before}
    return median(seconds), spent["data"] / sum(seconds)


class Varied(Dataset[tuple[Tensor, int]]):
    """Images varied one by one: flip, pad and crop, normalise, Cutout."""

    def __init__(self, images: Any, labels: Any) -> None:
        self.images, self.labels = torch.from_numpy(images).permute(0, 3, 1, 2), labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = self.images[index].float().div(255).sub(0.5).div(0.25)
        if torch.rand(()) < 0.5:
            image = image.flip(2)
        top, left = torch.randint(0, 9, (2,)).tolist()
        image = F.pad(image, (4, 4, 4, 4))[:, top : top + 32, left : left + 32].contiguous()
        row, column = torch.randint(0, 32, (2,)).tolist()
        image[:, max(row - 8, 0) : row + 8, max(column - 8, 0) : column + 8] = 0
        return image, int(self.labels[index])


def plain(name: str, batch: int, steps: int, folder: Path) -> float:
    given = arrays(folder)
    network = Network(zoo.get(name))
    optimizer = torch.optim.SGD(network.parameters(), 0.025, momentum=0.9, weight_decay=3e-4)
    images = Varied(given["x_train"], given["y_train"])
    batches = iter(DataLoader(images, batch, shuffle=True, num_workers=2, drop_last=True))
    seconds: list[float] = []
    for _ in range(steps + 1):
        start = time.perf_counter()
        pixels, labels = next(batches)
        logits, auxiliary = network(pixels)
        loss = F.cross_entropy(logits, labels) + 0.4 * F.cross_entropy(auxiliary, labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()
        loss.item()
        seconds.append(time.perf_counter() - start)
    return median(seconds[1:])


WAYS = ("plain", "ours", "data")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    shown = ["pr-darts-dl2", "darts-v2"]
    parser.add_argument("--cells", nargs="+", choices=zoo.names(), default=shown)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.way:
        with tempfile.TemporaryDirectory() as folder:
            path, name = Path(folder), options.cells[0]
            write_images(path)
            if options.way == "plain":
                print_number(plain(name, options.batch, options.steps, path))
            else:
                both = ours(name, options.batch, options.steps, options.threads, path)
                print_number(both[0] if options.way == "ours" else both[1])
        return
    print(
        f"training, 36 channels, 20 cells, batch {options.batch}, {options.threads} threads, "
        f"{options.repeats} times {options.steps} steps"
    )
    for name in options.cells:
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        for repeat in range(options.repeats):
            for way in WAYS if repeat == 0 else WAYS[:2]:
                words = ["--way", way, "--cells", name, "--batch", options.batch]
                words += ["--threads", options.threads, "--steps", options.steps]
                seconds[way].append(number_of("benchmarks.retrain", *map(str, words)))
        speed = {way: options.batch / median(seconds[way]) for way in WAYS[:2]}
        print(
            f"{name:14} plain {speed['plain']:.2f} images/s, ours {speed['ours']:.2f}: "
            f"{ratio(seconds['plain'], seconds['ours'])} times as fast; "
            f"preparing data takes {100 * seconds['data'][0]:.1f} % of a step",
            flush=True,
        )


if __name__ == "__main__":
    main()

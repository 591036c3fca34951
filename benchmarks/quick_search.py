"""What the quick search finds, beside cells drawn at random from the same space.

python -m benchmarks.quick_search [--seeds 5] [--runs runs/evidence]

Every cell, found or drawn, is trained in the same short way on the training part of the digits and
tested on their test part. Runs that are already there are not repeated.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import fmean, stdev

import torch
from torch import nn
from torch.nn import functional as F

from prnas.config.search import SearchConfig
from prnas.data.augment import Augmentation, plain
from prnas.data.dataset import DataSet, load, normalization
from prnas.data.streams import Stream
from prnas.nets.network import build
from prnas.runs.events import SearchResult
from prnas.runs.named import config_of
from prnas.runs.preparation import cosine, seed_for, torch_generator
from prnas.searching.api import resume, start
from prnas.space.analysis.counting import discoverable
from prnas.space.analysis.sampling import random_genotype
from prnas.space.genotype import Genotype

CHANNELS, CELLS, BATCH, LR = 8, 5, 64, 0.025


def searched(seed: int, runs: Path) -> SearchResult:
    config = config_of("quick", (), SearchConfig).model_copy(update={"seed": seed})
    folder = runs / f"quick-{seed}"
    if folder.exists():
        return resume(folder)
    return start(config, runs=runs, name=folder.name)


def test_accuracy(genotype: Genotype, data: DataSet, seed: int, epochs: int) -> float:
    """Trained for some epochs; the mean over the last third of them, on the test part."""
    config = config_of("quick", (), SearchConfig).data
    network = build(
        genotype,
        CHANNELS,
        CELLS,
        len(data.class_names),
        input_channels=data.shape[0],
        generator=torch_generator(seed, "weights"),
    ).to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    numbers = normalization(data.train)
    augment = Augmentation(config.flip, config.crop_padding, config.cutout, numbers)
    indices = torch.arange(len(data.train))
    stream = Stream(data.train, indices, seed_for(seed, "stream"))
    generator = torch_generator(seed, "augment")
    optimizer = torch.optim.SGD(network.parameters(), LR, momentum=0.9, weight_decay=3e-4)
    test_images = plain(data.test.fetch(torch.arange(len(data.test))), numbers)
    accuracies: list[float] = []
    for epoch in range(epochs):
        network.train()
        for group in optimizer.param_groups:
            group["lr"] = cosine(LR, 0.0, epoch, epochs)
        for _ in range(len(indices) // BATCH):
            images, labels = stream.next(BATCH)
            optimizer.zero_grad()
            F.cross_entropy(network(augment(images, generator)), labels).backward()
            nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimizer.step()
        if epoch >= epochs - max(1, epochs // 3):
            with torch.no_grad():
                right = network.eval()(test_images).argmax(1) == data.test.labels
            accuracies.append(float(right.float().mean()))
    return fmean(accuracies)


def summary(values: Sequence[float]) -> str:
    spread = f" ± {stdev(values):.2f}" if len(values) > 1 else ""
    return f"{fmean(values):.2f}{spread} (n={len(values)}, {min(values):.2f}-{max(values):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--runs", type=Path, default=Path("runs/evidence"))
    options = parser.parse_args()
    config = config_of("quick", (), SearchConfig)
    data = load(config.data, torch.device("cpu"))
    operations = discoverable(config.space, config.schedule.num_replacements)
    errors: dict[str, list[float]] = {"found": [], "random": []}
    seconds: list[float] = []
    validation: list[float] = []
    for seed in range(options.seeds):
        result = searched(seed, options.runs)
        seconds.append(result.seconds)
        validation.append(100 * (result.validation_accuracy or 0.0))
        cells = {
            "found": result.genotype,
            "random": random_genotype(operations, Random(f"random cell {seed}")),
        }
        for kind, genotype in cells.items():
            accuracy = test_accuracy(genotype, data, seed, options.epochs)
            errors[kind].append(100 * (1 - accuracy))
        line = {
            "seed": seed,
            "search_seconds": round(seconds[-1], 1),
            "supernet_validation": round(validation[-1], 2),
            "error_found": round(errors["found"][-1], 2),
            "error_random": round(errors["random"][-1], 2),
            "normal": [op.label for op in result.genotype.normal.operations],
            "reduction": [op.label for op in result.genotype.cell("reduction").operations],
        }
        print(json.dumps(line, ensure_ascii=False), flush=True)
    print(f"search, seconds: {summary(seconds)}")
    print(f"supernet's validation accuracy, %: {summary(validation)}")
    for kind, values in errors.items():
        print(f"test error of cells {kind}, %: {summary(values)}")


if __name__ == "__main__":
    main()

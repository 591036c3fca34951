"""A small search that has everything: cycles, grace epochs, children, both cells.

With one node, though: where it matters which edges remain, `network={"nodes": 2}` has a choice.
"""

from pathlib import Path
from typing import Any

import numpy as np

from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.space.genotype import Cell, Edge, Genotype
from prnas.space.operations import from_label
from prnas.space.shape import NASBENCH201


def _small_cell(*labels: str) -> Cell:
    first, second, third, fourth = map(from_label, labels)
    return Cell(((Edge(0, first), Edge(1, second)), (Edge(0, third), Edge(2, fourth))), (2, 3))


SMALL_GENOTYPE = Genotype(
    _small_cell("conv 3x3", "skip", "max 3x3", "conv 5x5 d2"),
    _small_cell("avg 3x3", "conv 3x3", "conv 1x7 7x1", "skip"),
)


def cell201(*labels: str) -> Cell:
    """A cell of NAS-Bench-201's shape from the operations of its six edges."""
    ops = iter(map(from_label, labels))
    nodes = tuple(tuple(Edge(source, next(ops)) for source in range(state)) for state in (1, 2, 3))
    return Cell(nodes, (3,), shape=NASBENCH201)


GENOTYPE201 = Genotype(cell201("skip", "zero", "conv 3x3", "conv 1x1", "avg 3x3", "conv 3x3"))


def write_images(path: Path, number: int = 96, size: int = 8, classes: int = 3) -> Path:
    """Images that can be told apart, as an npz file."""
    generator = np.random.default_rng(0)
    labels = np.arange(number) % classes
    images = generator.integers(0, 120, (number, size, size, 3))
    images[..., 0] += (labels * 60)[:, None, None]
    np.savez(
        path,
        x_train=images.astype(np.uint8),
        y_train=labels,
        x_test=images[:12].astype(np.uint8),
        y_test=labels[:12],
    )
    return path


def small_config(images: Path, /, **changes: Any) -> SearchConfig:
    """`changes`: sections to replace, by name, as plain data."""
    cycle = {"epochs": 2, "grace_epochs": 1, "morphisms": 2, "candidates": 4}
    plain: dict[str, Any] = {
        "seed": 1,
        "schedule": {
            "cycles": [
                cycle,
                {**cycle, "candidates": 4},
                {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1},
            ]
        },
        "network": {"cells": 3, "channels": 4, "nodes": 1},
        "architecture": {"lr": "auto"},
        "data": {"name": f"npz:{images}", "crop_padding": 1},
        "batch": {"min": 8, "multiple": 4, "max": 16, "every": 2},
        "compute": {"accelerator": "cpu", "threads": 1},
    }
    for name, value in changes.items():
        plain[name] = {**plain.get(name, {}), **value} if isinstance(value, dict) else value
    return SearchConfig.from_data(plain)


def small_training(images: Path, /, **changes: Any) -> RetrainConfig:
    """A small training that has everything: auxiliary head, drop-path, Cutout, warm-up, smoothing.

    `changes`: sections to replace, by name, as plain data.
    """
    plain: dict[str, Any] = {
        "seed": 1,
        "genotype": SMALL_GENOTYPE.to_json(),
        "network": {"cells": 3, "channels": 4, "drop_path": 0.4},
        "training": {"epochs": 4, "warmup_epochs": 1, "label_smoothing": 0.1},
        "data": {"name": f"npz:{images}", "crop_padding": 1, "cutout": 2},
        "batch": {"min": 20, "multiple": 4, "max": 20},
        "compute": {"accelerator": "cpu", "threads": 1},
    }
    for name, value in changes.items():
        plain[name] = {**plain.get(name, {}), **value} if isinstance(value, dict) else value
    return RetrainConfig.from_data(plain)

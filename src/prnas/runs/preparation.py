"""Preparations before a run's first step: generators, images, sizes that fit, digests."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from prnas.config.sections import ImagesConfig, RunConfig
from prnas.data.dataset import DataSet, Images, InMemory, Normalization
from prnas.io.errors import UserError


def seed_for(seed: int, *names: str | int) -> int:
    """A seed of 63 bits for one purpose of a run."""
    text = "/".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def torch_generator(seed: int, *names: str | int) -> torch.Generator:
    """A generator for one purpose; on the CPU, so that every device sees the same numbers."""
    return torch.Generator().manual_seed(seed_for(seed, *names))


def cosine(lr: float, lr_min: float, epoch: int, epochs: int) -> float:
    """The learning rate of an epoch: from `lr` towards `lr_min`, restarted with each cycle."""
    return lr_min + (lr - lr_min) * (1 + math.cos(math.pi * epoch / epochs)) / 2


def power_cosine(
    lr: float, lr_min: float, epoch: int, epochs: int, power: float = 1.0, warmup: int = 0
) -> float:
    """The cosine bent by a power, so that it falls faster at first and slower in the end.

    So sharpDARTS does. In `warmup` epochs it rises linearly to `lr`; only then it falls.
    """
    if epoch < warmup:
        return lr_min + (lr - lr_min) * (epoch + 1) / warmup
    epoch, epochs = epoch - warmup, epochs - warmup
    if power == 1:
        return cosine(lr, lr_min, epoch, epochs)
    share = (1 + math.cos(math.pi * epoch / epochs)) / 2
    return lr_min + (lr - lr_min) * (power ** (share + 1) - power) / (power**2 - power)


def period_of(epoch: int, epochs: int, first: int, factor: int) -> tuple[int, int]:
    """The epoch within its period, and how long that is: `first`, then ever longer by `factor`.

    If `first` is 0, all epochs are one period.
    """
    if first == 0:
        return epoch, epochs
    while epoch >= first:
        epoch, first = epoch - first, first * factor
    return epoch, first


def draw_indices(config: ImagesConfig, data: DataSet, generator: torch.Generator) -> Tensor:
    """Indices of as many training images as the config asks for, drawn at random."""
    number = len(data.train)
    if config.images is not None and config.images > number:
        raise UserError(
            f"data.images asks for {config.images} training images; {data.name} has {number}"
        )
    return torch.randperm(number, generator=generator)[: config.images].sort().values


def check_sizes(
    config: RunConfig,
    data: DataSet,
    num_images: int,
    num_processes: int,
    halvings: int = 2,
    auxiliary: bool = False,
) -> None:
    """Refuse images and batches that cannot be trained with, before anything is written.

    `num_images` train the network's weights, `halvings` is how often the network halves the size
    of its features, and `auxiliary` whether it has an auxiliary head.
    """
    batch = config.batch.min
    if batch * num_processes > num_images:
        raise UserError(
            f"batch.min ({batch}, in {num_processes} process(es)) exceeds the {num_images} images "
            f"that train the network's weights; set it lower"
        )
    # Batch normalisation has no deviation of a single value.
    _, height, width = data.shape
    small = max(height, width) <= 2**halvings
    if batch == 1 and (small or auxiliary):
        reason = (
            f"images of {height} x {width} pixels, which shrink to a single one"
            if small
            else "an auxiliary head, whose last features are one pixel large"
        )
        raise UserError(
            f"a batch of one image (batch.min) cannot be normalised with {reason}: batch.min must "
            "be 2 or more" + ("" if small else ", or network.auxiliary_weight 0")
        )


def check_same(name: str, state: Mapping[str, Any], digest: str) -> None:
    """A `UserError` unless a checkpoint's state has this digest by this name."""
    if state.get(name) != digest:
        raise UserError(
            f"the {name} changed since the checkpoint was written: a resumed run needs "
            f"the same; start a new one, or undo the change"
        )


def digest_of(splits: Sequence[Images], class_names: Sequence[str], numbers: Normalization) -> str:
    """A checksum of the images: of every pixel in memory, and of the mean colours in any case."""
    data = hashlib.sha256(json.dumps([list(class_names), numbers.mean, numbers.std]).encode())
    for images in splits:
        data.update(json.dumps([len(images), images.shape]).encode())
        data.update(images.labels.to(torch.int64).numpy().tobytes())
        if isinstance(images, InMemory):
            data.update(images.pixels.cpu().contiguous().numpy().data)
    return data.hexdigest()

"""What a run settles before its first step."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from prnas.config.retrain import RetrainConfig
from prnas.config.search import ImagesConfig, RunConfig, SearchConfig
from prnas.data.dataset import DataSet, Images, InMemory, Normalization, halves
from prnas.io.errors import UserError
from prnas.models.card import MOST_VALUES, values_inside
from prnas.runs.generators import torch_generator
from prnas.runs.integrity import config_digest


def cosine(lr: float, lr_min: float, epoch: int, epochs: int) -> float:
    """The learning rate of an epoch: from `lr` towards `lr_min`, restarted with each cycle."""
    return lr_min + (lr - lr_min) * (1 + math.cos(math.pi * epoch / epochs)) / 2


def some_places(config: ImagesConfig, data: DataSet, generator: torch.Generator) -> Tensor:
    """As many of the training images as the config asks for, drawn at random."""
    number = len(data.train)
    if config.images is not None and config.images > number:
        raise UserError(
            f"data.images asks for {config.images} training images; {data.name} has {number}"
        )
    return torch.randperm(number, generator=generator)[: config.images].sort().values


def split_places(config: SearchConfig, data: DataSet) -> tuple[Tensor, Tensor]:
    """The training images of the weights and of the architecture."""
    generator = torch_generator(config.seed, "halves")
    used = some_places(config.data, data, generator)
    weights, architecture = halves(
        data.train.labels[used], config.data.architecture_share, generator
    )
    return used[weights], used[architecture]


def check_sizes(config: RunConfig, data: DataSet, num_processes: int) -> None:
    """Refuse images and batches that cannot be trained with, before anything is written."""
    batch, halvings, auxiliary = config.batch_rule.min, 2, False
    if isinstance(config, SearchConfig):
        number = len(split_places(config, data)[0])
    else:
        assert isinstance(config, RetrainConfig)
        number = len(some_places(config.data, data, torch_generator(config.seed, "images")))
        halvings = 2 if config.network.stem == "cifar" else 5
        auxiliary = config.network.auxiliary_weight > 0
        shape, network = data.shape, config.network
        if values_inside(shape, network.channels, network.stem) > MOST_VALUES:
            raise UserError(
                f"images of {shape[1]} x {shape[2]} pixels are too large for {network.channels} "
                "channels: set data.image_size or network.channels lower"
            )
    if batch * num_processes > number:
        raise UserError(
            f"batch.min ({batch}, in {num_processes} process(es)) exceeds the {number} images that "
            f"train the network's weights; set it lower"
        )
    # Batch normalisation has no deviation of a single value.
    _, height, width = data.shape
    small = max(height, width) <= 2**halvings
    if batch == 1 and (small or auxiliary):
        what = (
            f"images of {height} x {width} pixels, which shrink to a single one"
            if small
            else "an auxiliary head, whose last features are one pixel large"
        )
        raise UserError(
            f"a batch of one image (batch.min) cannot be normalised with {what}: batch.min must be "
            "2 or more" + ("" if small else ", or network.auxiliary_weight 0")
        )


def digests(config: RunConfig, data_digest: str) -> dict[str, str]:
    """What must be the same in a run that goes on: not where it runs, but all that it is."""
    return {"config": config_digest(config), "data": data_digest}


def check_config(config: RunConfig, state: Mapping[str, Any]) -> None:
    """A `UserError` unless a checkpoint's state is of a run by this config."""
    check_same("config", state, config_digest(config))


def check_same(what: str, state: Mapping[str, Any], digest: str) -> None:
    if state.get(what) != digest:
        raise UserError(
            f"the {what} changed since the checkpoint was written: a resumed run needs "
            f"the same; start a new one, or undo the change"
        )


def digest_of(parts: Sequence[Images], class_names: Sequence[str], numbers: Normalization) -> str:
    """A checksum of the images: of every pixel in memory, and of the mean colours in any case."""
    data = hashlib.sha256(json.dumps([list(class_names), numbers.mean, numbers.std]).encode())
    for images in parts:
        data.update(json.dumps([len(images), images.shape]).encode())
        data.update(images.labels.to(torch.int64).numpy().tobytes())
        if isinstance(images, InMemory):
            data.update(images.pixels.cpu().contiguous().numpy().data)
    return data.hexdigest()

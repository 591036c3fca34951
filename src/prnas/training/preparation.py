"""What a search settles before its first step."""

import hashlib
import json
import math

import torch
from torch import Tensor

from prnas.config import SearchConfig
from prnas.errors import UserError
from prnas.training.data import DataSet, halves
from prnas.training.randomness import torch_generator


def cosine(lr: float, lr_min: float, epoch: int, epochs: int) -> float:
    """The learning rate of an epoch: from `lr` towards `lr_min`, restarted with each cycle."""
    return lr_min + (lr - lr_min) * (1 + math.cos(math.pi * epoch / epochs)) / 2


def split_places(config: SearchConfig, data: DataSet) -> tuple[Tensor, Tensor]:
    """The training images of the weights and of the architecture."""
    number = len(data.train)
    if config.data.images is not None and config.data.images > number:
        raise UserError(
            f"data.images asks for {config.data.images} training images; {data.name} has {number}"
        )
    generator = torch_generator(config.seed, "halves")
    used = torch.randperm(number, generator=generator)[: config.data.images].sort().values
    weights, architecture = halves(
        data.train.labels[used], config.data.architecture_share, generator
    )
    return used[weights], used[architecture]


def digests(config: SearchConfig, data: DataSet) -> dict[str, str]:
    """What must be the same in a search that goes on: not where it runs, but all that it is."""
    told = config.to_data()
    for section in ("compute", "checkpoints", "description"):
        del told[section]
    for how in ("root", "storage", "workers"):
        del told["data"][how]
    images = [len(data.train), data.train.shape, data.class_names]
    labels = data.train.labels.to(torch.int64).numpy().tobytes()
    return {
        "config": hashlib.sha256(json.dumps(told).encode()).hexdigest(),
        "data": hashlib.sha256(json.dumps(images).encode() + labels).hexdigest(),
    }

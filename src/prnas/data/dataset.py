"""Data sets: loaded by name, in memory or streamed; their split and normalisation."""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from prnas.config.sections import ImagesConfig
from prnas.data.catalog import SPECS, CifarSpec, check_name, default_root
from prnas.data.formats.cifar import read_cifar
from prnas.data.formats.folder import DEFAULT_SIZE, FolderOptions, read_folder
from prnas.data.formats.idx import read_idx
from prnas.data.formats.npz import read_digits, read_npz
from prnas.data.readers import ImageSet, Say, resize
from prnas.data.storage import Images, Streamed, fits, in_memory
from prnas.data.storage import InMemory as InMemory
from prnas.io.errors import UserError
from prnas.io.memory import free_memory
from prnas.io.paths import home_expanded
from prnas.nets.devices import to_device

_BATCH_PIXELS = 2**23  # Values that are summed up together for the means.


@dataclass(frozen=True)
class DataSet:
    """A training and a test part, of the same shape and the same classes."""

    name: str
    train: Images
    test: Images
    class_names: tuple[str, ...]

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width."""
        return self.train.shape

    def close(self) -> None:
        self.train.close()
        self.test.close()


@dataclass(frozen=True)
class Normalization:
    """Mean and standard deviation of each channel, of pixels from 0 to 1."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def tensors(self, device: torch.device) -> Tensor:
        """Both, to be unpacked, each (C, 1, 1) in single precision."""
        both = torch.tensor([self.mean, self.std], dtype=torch.float32)
        return to_device(both, device)[:, :, None, None]


def load(
    config: ImagesConfig,
    device: torch.device,
    say: Say = lambda note: print(note, file=sys.stderr),
    free: float | None = None,
) -> DataSet:
    """The set that the config names; downloaded if need be. `close` it at the end.

    `free` is the available main memory; by default, what this process may take. `say` receives
    notes for people, such as images that were skipped. A `UserError` says what is wrong.
    """
    room = free_memory() if free is None else free

    def in_memory_if(num_bytes: int) -> bool:
        if config.storage == "auto":
            return fits(num_bytes, device, room)
        return config.storage == "memory"

    images = _read(config, in_memory_if, say, room)
    train, test = images.train, images.test
    if not config.name.startswith("folder:"):  # A folder's images have this size already.
        train, test = (resize(split, config.image_size) for split in (train, test))
    num_bytes = (len(train.reader) + len(test.reader)) * math.prod(train.reader.shape)
    # A compressed file was unpacked into main memory: leaving it there takes no more.
    there = train.reader.resident and test.reader.resident and device.type == "cpu"
    if in_memory_if(num_bytes) or (there and config.storage == "auto"):
        splits: list[Images] = [in_memory(split, device) for split in (train, test)]
    else:
        splits = [Streamed(split, config.workers, device) for split in (train, test)]
    return DataSet(config.name, splits[0], splits[1], images.class_names)


def _read(
    config: ImagesConfig, in_memory_if: Callable[[int], bool], say: Say, room: float
) -> ImageSet:
    check_name(config.name)
    kind, _, path = config.name.partition(":")
    if config.name == "digits":
        return read_digits()
    if config.name in SPECS:
        spec, root = SPECS[config.name], _root(config)
        if isinstance(spec, CifarSpec):
            return read_cifar(spec, root, say)
        return read_idx(spec, root, say)
    if kind == "npz":
        return read_npz(home_expanded(path), config.test_share, room / 2, say)
    options = FolderOptions(
        size=config.image_size or DEFAULT_SIZE,
        test_share=config.test_share,
        skip_broken=config.broken == "skip",
        threads=config.workers,
        fits=in_memory_if,
        say=say,
    )
    return read_folder(home_expanded(path), options)


def _root(config: ImagesConfig) -> Path:
    if config.root is None:
        return default_root()
    root = home_expanded(config.root)
    if "\0" in config.root or not root.is_dir():
        raise UserError(
            f"data.root: there is no folder {config.root!r:.200}. Make it, or leave data.root out "
            f"to use {default_root()}"
        )
    return root


def halves(
    labels: Tensor, architecture_share: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """A random split: indices for the network weights, and for the architecture weights."""
    number = len(labels)
    if number < 2:
        raise UserError(
            f"the search needs at least two training images, one for network weights and one for "
            f"the architecture; there {'is one' if number else 'are none'}"
        )
    order = torch.randperm(number, generator=generator)
    architecture = min(max(round(number * architecture_share), 1), number - 1)
    return order[architecture:].sort().values, order[:architecture].sort().values


def validation_split(
    labels: Tensor, indices: Tensor, share: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """A random split of `indices`, of each class alike: those that train, and a held-out share.

    A class of one image trains. A `UserError` if nothing would be held out.
    """
    order = indices[torch.randperm(len(indices), generator=generator)]
    held_out: list[Tensor] = []
    for label in labels[order].unique().tolist():
        own = order[labels[order] == label]
        held_out.append(own[: min(max(round(len(own) * share), 1), len(own) - 1)])
    validation = torch.cat(held_out).sort().values if held_out else order
    if not len(validation):
        raise UserError(
            "data.validation takes images of classes that have two or more, and no class has"
        )
    return indices[~torch.isin(indices, validation)], validation


def normalization(images: Images, indices: Tensor | None = None) -> Normalization:
    """Exact mean and deviation of all images or of those at `indices`; a constant channel has 1."""
    if indices is None:
        indices = torch.arange(len(images))
    channels, height, width = images.shape
    sums = squares = torch.zeros(channels, dtype=torch.int64)
    # Sums of whole numbers: nothing is rounded.
    for _, pixels in images.batches(indices, max(1, _BATCH_PIXELS // math.prod(images.shape))):
        sums = sums + pixels.sum((0, 2, 3), dtype=torch.int64).cpu()
        squares = squares + pixels.int().square().sum((0, 2, 3), dtype=torch.int64).cpu()
    total = len(indices) * height * width
    if not total:
        raise UserError("there are no images to take the mean of")
    mean = tuple(value / (255 * total) for value in sums.tolist())
    pairs = zip(sums.tolist(), squares.tolist(), strict=True)
    variances = [total * square - value * value for value, square in pairs]
    std = tuple(math.sqrt(value) / (255 * total) if value else 1.0 for value in variances)
    return Normalization(mean, std)

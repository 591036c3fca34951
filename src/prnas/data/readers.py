"""Readers of images by their indices: from memory, from mapped files, from image files.

Readers are plain values that are sent to worker processes, without the files that they hold open.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from prnas.data.image_files import read_picture, resized

Shape = tuple[int, int, int]
Pixels = NDArray[np.uint8]
Indices = NDArray[np.int64]
Say = Callable[[str], None]  # Shows a note to people.


class ImageReader(Protocol):
    """Images that are read by their indices: uint8, (number, channels, height, width)."""

    @property
    def shape(self) -> Shape: ...
    @property
    def resident(self) -> bool:
        """Whether the images are in this process's memory, where workers do not help."""
        ...

    def __len__(self) -> int: ...
    def read(self, indices: Indices) -> Pixels: ...


@dataclass(frozen=True, eq=False)
class ArrayReader:
    """An array of images in memory, (number, channels, height, width)."""

    array: Pixels
    resident = True

    @property
    def shape(self) -> Shape:
        channels, height, width = self.array.shape[1:]
        return channels, height, width

    def __len__(self) -> int:
        return len(self.array)

    def read(self, indices: Indices) -> Pixels:
        return self.array[indices]


@dataclass(frozen=True)
class Piece:
    """Records of equal length in a file; an image is a record without its first `skip` bytes."""

    path: Path
    number: int
    offset: int = 0
    skip: int = 0


@dataclass(frozen=True, eq=False)
class MappedReader:
    """Images in mapped files, which the operating system reads as they are needed."""

    pieces: tuple[Piece, ...]
    shape: Shape
    channels_last: bool = False
    subset: Indices | None = None  # The only images of the files that it has.
    resident = False

    def __len__(self) -> int:
        total = sum(piece.number for piece in self.pieces)
        return total if self.subset is None else len(self.subset)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_maps"}

    @cached_property
    def _maps(self) -> list[Pixels]:
        length = math.prod(self.shape)
        maps: list[Pixels] = []
        for piece in self.pieces:
            size = (piece.number, piece.skip + length)
            records = np.memmap(piece.path, np.uint8, "r", piece.offset, size)
            maps.append(records[:, piece.skip :])
        return maps

    def read(self, indices: Indices) -> Pixels:
        if self.subset is not None:
            indices = self.subset[indices]
        channels, height, width = self.shape
        flat = np.empty((len(indices), channels * height * width), np.uint8)
        start = 0
        for mapped in self._maps:
            here = (indices >= start) & (indices < start + len(mapped))
            flat[here] = mapped[indices[here] - start]
            start += len(mapped)
        if self.channels_last:
            return flat.reshape(-1, height, width, channels).transpose(0, 3, 1, 2)
        return flat.reshape(-1, channels, height, width)


@dataclass(frozen=True)
class FileReader:
    """Image files, decoded and resized when they are read."""

    paths: tuple[Path, ...]
    shape: Shape
    resident = False

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, indices: Indices) -> Pixels:
        channels, size, _ = self.shape
        with warnings.catch_warnings(action="ignore"):  # Pillow's; what matters is refused.
            images = [read_picture(self.paths[index], size, channels) for index in indices.tolist()]
        return np.stack(images) if images else np.empty((0, *self.shape), np.uint8)


@dataclass(frozen=True)
class ResizingReader:
    """The images of another reader, resized to squares cut from the middle."""

    reader: ImageReader
    size: int

    @property
    def shape(self) -> Shape:
        return self.reader.shape[0], self.size, self.size

    @property
    def resident(self) -> bool:
        return self.reader.resident

    def __len__(self) -> int:
        return len(self.reader)

    def read(self, indices: Indices) -> Pixels:
        result = np.empty((len(indices), *self.shape), np.uint8)
        for number, image in enumerate(self.reader.read(indices)):
            for channel, plane in enumerate(image):
                full = Image.fromarray(np.ascontiguousarray(plane))
                result[number, channel] = np.asarray(resized(full, self.size))
        return result


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Images and their classes."""

    reader: ImageReader
    labels: Indices

    def subset(self, indices: Indices) -> "LabelledImages":
        if isinstance(self.reader, MappedReader) and self.reader.subset is None:
            return LabelledImages(replace(self.reader, subset=indices), self.labels[indices])
        return LabelledImages(ArrayReader(self.reader.read(indices)), self.labels[indices])


@dataclass(frozen=True, eq=False)
class ImageSet:
    """A training and a test part, and the names of the classes in the order of the labels.

    `numbered`: the names are the labels, for want of others.
    """

    train: LabelledImages
    test: LabelledImages
    class_names: tuple[str, ...]
    numbered: bool = False


def resize(split: LabelledImages, size: int | None) -> LabelledImages:
    """The images as squares of `size`, or unchanged if it is None."""
    if size is None or split.reader.shape[1:] == (size, size):
        return split
    return LabelledImages(ResizingReader(split.reader, size), split.labels)

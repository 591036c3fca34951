"""Readers of images by their indices: from memory, from mapped files, from image files.

Readers are plain values that are sent to worker processes, without the files that they hold open.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
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
    resident: bool = True

    @property
    def shape(self) -> Shape:
        return _three(self.array.shape[1:])

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


@dataclass(frozen=True)
class MappedReader:
    """Images in mapped files, which the operating system reads as they are needed."""

    pieces: tuple[Piece, ...]
    shape: Shape
    channels_last: bool = False
    resident: bool = False

    def __len__(self) -> int:
        return sum(piece.number for piece in self.pieces)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_maps"}

    @cached_property
    def _maps(self) -> list[Pixels]:
        length = int(np.prod(self.shape))
        return [
            np.memmap(
                piece.path,
                np.uint8,
                mode="r",
                offset=piece.offset,
                shape=(piece.number, piece.skip + length),
            )[:, piece.skip :]
            for piece in self.pieces
        ]

    def read(self, indices: Indices) -> Pixels:
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
    resident: bool = False

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, indices: Indices) -> Pixels:
        channels, size, _ = self.shape
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's warnings; what matters is refused.
            images = [read_picture(self.paths[index], size, channels) for index in indices.tolist()]
        return np.stack(images) if images else np.empty((0, *self.shape), np.uint8)


@dataclass(frozen=True, eq=False)
class SubsetReader:
    """A subset of the images of another reader."""

    reader: ImageReader
    indices: Indices

    @property
    def shape(self) -> Shape:
        return self.reader.shape

    @property
    def resident(self) -> bool:
        return self.reader.resident

    def __len__(self) -> int:
        return len(self.indices)

    def read(self, indices: Indices) -> Pixels:
        return self.reader.read(self.indices[indices])


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


@dataclass(frozen=True, eq=False)
class ImageSet:
    """A training and a test part, and the names of the classes in the order of the labels."""

    train: LabelledImages
    test: LabelledImages
    class_names: tuple[str, ...]


def resize(part: LabelledImages, size: int | None) -> LabelledImages:
    """The images as squares of `size`, or unchanged if it is None."""
    if size is None or part.reader.shape[1:] == (size, size):
        return part
    return LabelledImages(ResizingReader(part.reader, size), part.labels)


def _three(shape: Sequence[int]) -> Shape:
    channels, height, width = shape
    return channels, height, width

"""Images by number, wherever they are: in memory, in mapped files, or one file each.

Readers are plain values that worker processes receive; what they hold open stays behind.
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
Places = NDArray[np.int64]


class Rows(Protocol):
    """Images that are read by their places: uint8, (number, channels, height, width)."""

    @property
    def shape(self) -> Shape: ...
    @property
    def resident(self) -> bool:
        """Already in this process's memory, where workers would be of no help."""
        ...

    def __len__(self) -> int: ...
    def read(self, places: Places) -> Pixels: ...


@dataclass(frozen=True, eq=False)
class ArrayRows:
    """An array of images in memory, (number, channels, height, width)."""

    array: Pixels
    resident: bool = True

    @property
    def shape(self) -> Shape:
        return _three(self.array.shape[1:])

    def __len__(self) -> int:
        return len(self.array)

    def read(self, places: Places) -> Pixels:
        return self.array[places]


@dataclass(frozen=True)
class Piece:
    """Equally long records in a file; an image is a record without its first `skip` bytes."""

    path: Path
    number: int
    offset: int = 0
    skip: int = 0


@dataclass(frozen=True)
class MappedRows:
    """Images of files that the operating system reads as they are needed."""

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

    def read(self, places: Places) -> Pixels:
        channels, height, width = self.shape
        flat = np.empty((len(places), channels * height * width), np.uint8)
        start = 0
        for mapped in self._maps:
            here = (places >= start) & (places < start + len(mapped))
            flat[here] = mapped[places[here] - start]
            start += len(mapped)
        if self.channels_last:
            return flat.reshape(-1, height, width, channels).transpose(0, 3, 1, 2)
        return flat.reshape(-1, channels, height, width)


@dataclass(frozen=True)
class PictureRows:
    """Image files, decoded and brought to one size when they are read."""

    paths: tuple[Path, ...]
    shape: Shape
    resident: bool = False

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, places: Places) -> Pixels:
        channels, size, _ = self.shape
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's; what matters is refused
            read = [read_picture(self.paths[place], size, channels) for place in places.tolist()]
        return np.stack(read) if read else np.empty((0, *self.shape), np.uint8)


@dataclass(frozen=True, eq=False)
class ChosenRows:
    """Some of the images of others."""

    rows: Rows
    places: Places

    @property
    def shape(self) -> Shape:
        return self.rows.shape

    @property
    def resident(self) -> bool:
        return self.rows.resident

    def __len__(self) -> int:
        return len(self.places)

    def read(self, places: Places) -> Pixels:
        return self.rows.read(self.places[places])


@dataclass(frozen=True)
class ResizedRows:
    """The images of others in another size: squares, cut from the middle."""

    rows: Rows
    size: int

    @property
    def shape(self) -> Shape:
        return self.rows.shape[0], self.size, self.size

    @property
    def resident(self) -> bool:
        return self.rows.resident

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, places: Places) -> Pixels:
        result = np.empty((len(places), *self.shape), np.uint8)
        for number, image in enumerate(self.rows.read(places)):
            for channel, plane in enumerate(image):
                whole = Image.fromarray(np.ascontiguousarray(plane))
                result[number, channel] = np.asarray(resized(whole, self.size))
        return result


@dataclass(frozen=True, eq=False)
class Part:
    """Images and their classes."""

    rows: Rows
    labels: Places


@dataclass(frozen=True, eq=False)
class Source:
    """What was found: the two parts, and the classes by their numbers."""

    train: Part
    test: Part
    class_names: tuple[str, ...]


def resize(part: Part, size: int | None) -> Part:
    """The same images as squares of `size`, or as they are."""
    if size is None or part.rows.shape[1:] == (size, size):
        return part
    return Part(ResizedRows(part.rows, size), part.labels)


def _three(shape: Sequence[int]) -> Shape:
    channels, height, width = shape
    return channels, height, width

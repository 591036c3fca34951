"""Image files: read as squares of 8-bit pixels, or refused with a reason."""

import os
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from prnas.io.errors import UserError

MOST_PIXELS = 2**26  # An image's limit before it is resized; a small file may claim billions.
_GREY = frozenset({"1", "L", "I;16", "I;16B", "I;16L", "I;16N"})
# EPS is a program that another program would run; Pillow before 12.2 unpacks FITS without a bound;
# the others are recognized, but not decoded.
_NOT_READ = frozenset({"EPS", "FITS", "WMF", "BUFR", "GRIB", "HDF5", "MPEG"})


class BrokenPictureError(UserError):
    """An image file that cannot be used. `reason` does not repeat its name."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason)  # Both, so that it can be pickled between processes.
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path} cannot be read as an image: {self.reason}"


@cache
def formats() -> tuple[str, ...]:
    """The names of the formats that are read."""
    Image.init()
    return tuple(sorted(set(Image.OPEN) - _NOT_READ))


@cache
def endings() -> frozenset[str]:
    """The endings of file names, such as `.png`, of these formats."""
    extensions = Image.registered_extensions().items()
    return frozenset(ending for ending, name in extensions if name in formats())


def files_in(folder: Path, onerror: Callable[[OSError], None]) -> Iterator[Path]:
    """All files in a folder and its folders, sorted; none hidden, none behind links to folders."""
    for inner, folders, names in os.walk(folder, onerror=onerror):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(inner, name) for name in sorted(names) if not name.startswith("."))


def is_grey(path: Path) -> bool:
    """Whether a file holds a grey image; a cheap check whether it can be read at all."""
    # What Pillow warns of is refused.
    with warnings.catch_warnings(action="ignore"), _opened(path) as image:
        grey = image.mode in _GREY or _is_sixteen_bit(image)
        image.verify()
        return grey


def look_at(path: Path) -> tuple[int, int, bool]:
    """Width, height and whether it is grey, by the header alone."""
    with warnings.catch_warnings(action="ignore"), _opened(path) as image:
        return *image.size, image.mode in _GREY or _is_sixteen_bit(image)


def read_picture(
    path: Path, size: int | tuple[int, int], channels: int
) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The middle of an image, upright and opaque: (channels, height, width); see `resized`."""
    longest = size if isinstance(size, int) else max(size)
    with _opened(path) as image:
        image.draft(None, (2 * longest, 2 * longest))  # Large JPEGs decode at a fraction.
        upright = ImageOps.exif_transpose(image)
        plain = _grey(upright) if channels == 1 else _colours(upright)
        pixels = np.asarray(resized(plain, size))
    return pixels[None] if channels == 1 else pixels.transpose(2, 0, 1)


def resized(image: Image.Image, size: int | tuple[int, int]) -> Image.Image:
    """The middle of an image, scaled to cover `size`: a square's side, or (height, width)."""
    rows, columns = (size, size) if isinstance(size, int) else size
    width, height = image.size
    if (height, width) == (rows, columns):
        return image
    # The part of the image that is visible: whole numbers for a square, so nothing is rounded.
    if width * rows <= height * columns:
        across, down = float(width), width * rows / columns
    else:
        across, down = height * columns / rows, float(height)
    left, top = (width - across) / 2, (height - down) / 2
    box = (left, top, min(left + across, width), min(top + down, height))
    return image.resize((columns, rows), Image.Resampling.BILINEAR, box=box)


@contextmanager
def _opened(path: Path) -> Generator[Image.Image]:
    """An image, of which only the header was read. All errors become a `BrokenPictureError`."""
    try:
        with Image.open(path, formats=formats()) as image:
            width, height = image.size
            if width * height > MOST_PIXELS:
                reason = f"{width} x {height} pixels are too many (at most {MOST_PIXELS})"
                raise BrokenPictureError(path, reason)
            if image.mode in ("I", "F") and not _is_sixteen_bit(image):
                reason = "32-bit pixels have no fixed range; save it with 8 or 16 bits"
                raise BrokenPictureError(path, reason)
            yield image
    except BrokenPictureError:
        raise
    except Exception as error:  # Damaged files make Pillow raise almost anything.
        raise BrokenPictureError(path, _reason(error)) from None


def _is_sixteen_bit(image: Image.Image) -> bool:
    """Whether an image has 16 bits; Pillow gives some of them 32-bit pixels."""
    return image.mode.startswith("I;16") or (image.mode == "I" and image.format in ("PNG", "PPM"))


def _grey(image: Image.Image) -> Image.Image:
    # `exif_transpose` drops the format, but `_opened` has refused other 32-bit images.
    if image.mode.startswith("I"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode not in _GREY and image.has_transparency_data:
        image = _colours(image)
    return image.convert("L")


def _colours(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):
        return _grey(image).convert("RGB")
    if not image.has_transparency_data:
        return image.convert("RGB")
    transparent = image.convert("RGBA")
    white = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(white, transparent).convert("RGB")


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, Image.UnidentifiedImageError):
        return "it is in no known image format"
    if isinstance(error, Image.DecompressionBombError):
        return "it has too many pixels"
    return str(error)[:200] or type(error).__name__

"""Images and labels in NumPy's .npz files, from which nothing is ever unpickled."""

import io
import math
import struct
import zipfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from prnas.data.image_files import MOST_PIXELS
from prnas.data.readers import ArrayReader, ImageSet, LabelledImages, MappedReader, Piece, Say
from prnas.data.split import stratified
from prnas.io.errors import UserError

_TRAIN = (("x_train", "y_train"), ("train_images", "train_labels"))
# The first pair that is there is the test part.
_TEST = (("x_test", "y_test"), ("test_images", "test_labels"), ("val_images", "val_labels"))
_NAMES = sorted({"class_names", *(name for pair in (*_TRAIN, *_TEST) for name in pair)})
_CHANNELS = (1, 3, 4)
_MOST_CLASSES = 100_000
_MOST_IMAGES = 2**26
_MOST_NAMES_BYTES = 2**24


@dataclass(frozen=True)
class _Array:
    """The header of an array, whose values are not loaded yet."""

    name: str
    info: zipfile.ZipInfo
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool
    header_bytes: int

    @property
    def num_bytes(self) -> int:
        return int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize


def read_npz(path: Path, test_share: float, available: float, say: Say) -> ImageSet:
    """The set in a file; without a test part, one is split off.

    Arrays that are not compressed stay in the file. `available` is the number of bytes that the
    others may take.
    """
    try:
        if not (path.is_file() or path.is_dir()) and path.exists():
            raise UserError(f"{path} is not a plain file")  # A device or a pipe may never end.
        with zipfile.ZipFile(path) as file:
            present = set(file.namelist())
            names = [name for name in _NAMES if f"{name}.npy" in present]
            arrays = {name: _header(path, file, name) for name in names}
            return _Reader(path, file, arrays, available).images(test_share, say)
    except UserError:
        raise
    except MemoryError:
        raise UserError(f"{path} takes more than the memory that is free") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    except Exception as error:  # Damaged files make zipfile raise almost anything.
        raise UserError(f"{path} is not a readable .npz file: {error!s:.200}") from None


def _header(path: Path, file: zipfile.ZipFile, name: str) -> _Array:
    info = file.getinfo(f"{name}.npy")
    with file.open(info) as stream:
        try:
            version = npy.read_magic(stream)
            read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
            shape, fortran, dtype = read(stream)
        except Exception:  # NumPy parses it as Python literals, which fail in many ways.
            raise UserError(f"{path}: '{name}' is not an array of numbers") from None
        array = _Array(name, info, shape, dtype, fortran, stream.tell())
    if dtype.hasobject:
        raise UserError(
            f"{path}: '{name}' holds pickled Python objects, which are never loaded; "
            "save it as an array of numbers"
        )
    if min(shape, default=0) < 0 or array.header_bytes + array.num_bytes != info.file_size:
        raise UserError(f"{path}: '{name}' does not have the size that its header says")
    return array


@dataclass(frozen=True)
class _Reader:
    path: Path
    file: zipfile.ZipFile
    arrays: dict[str, _Array]
    available: float

    def images(self, test_share: float, say: Say) -> ImageSet:
        train_names = self._pair(_TRAIN)
        if train_names is None:
            raise UserError(
                f"{self.path} has no training images: it needs the arrays x_train and y_train "
                "(or train_images and train_labels), and may have x_test and y_test"
            )
        test_names = self._pair(_TEST)
        if test_names != _TEST[2] and set(_TEST[2]) <= set(self.arrays):
            say(f"{self.path}: val_images and val_labels are not used")
        train = self._split(*train_names)
        test = None if test_names is None else self._split(*test_names)
        names = self._class_names(train, test)
        if test is None:
            keys = [str(number).encode() for number in range(len(train.labels))]
            train_indices, test_indices = stratified(train.labels, keys, test_share, names)
            test, train = train.subset(test_indices), train.subset(train_indices)
        if test.reader.shape != train.reader.shape:
            raise UserError(
                f"{self.path}: training images are {train.reader.shape} (channels, height, width), "
                f"test images {test.reader.shape}"
            )
        return ImageSet(train, test, names, numbered="class_names" not in self.arrays)

    def _pair(self, pairs: tuple[tuple[str, str], ...]) -> tuple[str, str] | None:
        for pair in pairs:
            present = [name for name in pair if name in self.arrays]
            if len(present) == 1:
                missing = next(name for name in pair if name not in self.arrays)
                raise UserError(f"{self.path} has '{present[0]}' but not '{missing}'")
            if present:
                return pair
        return None

    def _split(self, images: str, labels: str) -> LabelledImages:
        array = self.arrays[labels]
        if array.dtype.kind not in "iu" or array.shape[1:] not in ((), (1,)):
            raise UserError(
                f"{self.path}: '{labels}' must be whole numbers, one for each image; "
                f"got {_described(array)}"
            )
        number = array.shape[0] if array.shape else 0
        if self.arrays[images].shape[:1] != array.shape[:1] or not number:
            raise UserError(
                f"{self.path}: '{images}' is {_described(self.arrays[images])}, "
                f"'{labels}' is {_described(array)}: there must be a label for each of the images"
            )
        if number > _MOST_IMAGES:  # A small file may unpack to any number of zeros.
            raise UserError(f"{self.path}: '{labels}' has more than {_MOST_IMAGES:,} entries")
        values = self._load(array).reshape(-1)
        least, most = int(values.min()), int(values.max())
        if least < 0 or most >= _MOST_CLASSES:
            raise UserError(
                f"{self.path}: '{labels}' must hold classes from 0 to at most "
                f"{_MOST_CLASSES - 1}; got {least if least < 0 else most}"
            )
        return LabelledImages(self._images(self.arrays[images]), values.astype(np.int64))

    def _images(self, array: _Array) -> ArrayReader | MappedReader:
        shape, channels_last = _layout(self.path, array)
        if array.info.compress_type == zipfile.ZIP_STORED and not array.fortran:
            piece = Piece(self.path.absolute(), array.shape[0], _data_offset(self.path, array))
            return MappedReader((piece,), shape, channels_last)
        if array.num_bytes > self.available:
            raise UserError(
                f"{self.path}: '{array.name}' takes {array.num_bytes / 1e9:.1f} GB, more than the "
                "memory that is free. Save the file with numpy.savez, uncompressed: then it is "
                "read as it is needed"
            )
        pixels = self._load(array)
        if channels_last:
            pixels = pixels.reshape(len(pixels), *shape[1:], shape[0]).transpose(0, 3, 1, 2)
        return ArrayReader(np.ascontiguousarray(pixels.reshape(len(pixels), *shape)))

    def _load(self, array: _Array) -> np.ndarray[Any, Any]:
        with self.file.open(array.info) as stream:
            return npy.read_array(stream, allow_pickle=False)  # Its size was checked.

    def _class_names(self, train: LabelledImages, test: LabelledImages | None) -> tuple[str, ...]:
        most = int(max(split.labels.max() for split in (train, test) if split is not None))
        array = self.arrays.get("class_names")
        if array is None:
            counts = np.bincount(train.labels, minlength=most + 1)
            if not counts.all():
                raise UserError(
                    f"{self.path}: classes must be counted from 0 without gaps; no training "
                    f"image is of class {int(counts.argmin())}, but there is a class {most}"
                )
            names = tuple(map(str, range(most + 1)))
        else:
            is_list = array.dtype.kind == "U" and len(array.shape) == 1
            fits = array.num_bytes <= _MOST_NAMES_BYTES
            if not is_list or not fits or array.shape[0] > _MOST_CLASSES:
                raise UserError(
                    f"{self.path}: 'class_names' must be a list of texts, at most {_MOST_CLASSES}; "
                    f"got {_described(array)}"
                )
            names = tuple(str(name) for name in self._load(array))
            if most >= len(names):
                raise UserError(
                    f"{self.path}: there is a label {most}, but 'class_names' has {len(names)}"
                )
        if len(names) < 2:
            raise UserError(f"{self.path} has one class only; two are needed")
        return names


def _layout(path: Path, array: _Array) -> tuple[tuple[int, int, int], bool]:
    """Channels, height and width, and whether the channels come last."""
    sizes = array.shape[1:]
    fits = all(0 < size <= 2**14 for size in sizes) and math.prod(sizes) <= 4 * MOST_PIXELS
    if array.dtype == np.uint8 and fits:
        if len(sizes) == 2:
            return (1, sizes[0], sizes[1]), False
        if len(sizes) == 3:
            first, last = sizes[0] in _CHANNELS, sizes[2] in _CHANNELS
            if last and not first:
                return (sizes[2], sizes[0], sizes[1]), True
            if first and not last:
                return (sizes[0], sizes[1], sizes[2]), False
            if first and last:
                raise UserError(
                    f"{path}: '{array.name}' is {_described(array)}, and either end could be the "
                    "channels"
                )
    raise UserError(
        f"{path}: '{array.name}' must be uint8 images (number, height, width), or with 1, 3 or 4 "
        f"channels at the end or after the number; got {_described(array)}"
    )


def _data_offset(path: Path, array: _Array) -> int:
    """The offset in the file at which an uncompressed array's numbers begin."""
    with path.open("rb") as file:
        file.seek(array.info.header_offset)
        local = file.read(30)
    if len(local) < 30 or not local.startswith(b"PK\x03\x04"):
        raise UserError(f"{path} is not a readable .npz file")
    name_bytes, extra_bytes = struct.unpack("<HH", local[26:30])
    start = array.info.header_offset + 30 + name_bytes + extra_bytes
    if start + array.info.file_size > path.stat().st_size:
        raise UserError(f"{path} is cut off")
    return start + array.header_bytes


def _described(array: _Array) -> str:
    return f"{array.dtype!s:.60} of shape {array.shape!s:.200}"


def read_digits() -> ImageSet:
    """The digits inside the package: 1,438 to train, 359 to test; `digits.md` names the source."""
    raw = resources.files("prnas.data.formats").joinpath("digits.npz").read_bytes()
    with np.load(io.BytesIO(raw), allow_pickle=False) as file:
        splits = [(file[f"x_{name}"], file[f"y_{name}"]) for name in ("train", "test")]
    train, test = (LabelledImages(ArrayReader(x[:, None]), y.astype(np.int64)) for x, y in splits)
    return ImageSet(train, test, tuple(map(str, range(10))))

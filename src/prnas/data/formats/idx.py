"""Sets in the idx format of MNIST, such as Fashion-MNIST."""

import struct
from pathlib import Path

import numpy as np

from prnas.data.catalog import Download, IdxSpec, find, idx_file
from prnas.data.download import download, verify, without_network
from prnas.data.readers import ArrayReader, ImageSet, LabelledImages, MappedReader, Piece, Say
from prnas.data.unpack import gunzip
from prnas.io.errors import UserError, cannot


def read_idx(spec: IdxSpec, root: Path, say: Say) -> ImageSet:
    """The set in `root`, plain or compressed, or else downloaded."""
    folder = find(spec, root)
    if folder is None:
        folder = root / spec.folder
        names = ", ".join(file.name for file in spec.downloads)
        otherwise = without_network(f"{names} (or these without .gz)", folder)
        for file in spec.downloads:
            if idx_file(folder, file) is None:
                download(file, folder, say, otherwise)
    train, test = (
        _split(spec, folder, downloads, number)
        for downloads, number in zip((spec.train, spec.test), spec.numbers, strict=True)
    )
    return ImageSet(train, test, spec.class_names)


def _split(
    spec: IdxSpec, folder: Path, files: tuple[Download, Download], number: int
) -> LabelledImages:
    images = _reader(folder, files[0], (number, *spec.size))
    labels = _reader(folder, files[1], (number,)).read(np.arange(number)).reshape(number)
    if labels.max() >= len(spec.class_names):
        raise UserError(
            f"{idx_file(folder, files[1])} has label {labels.max()}; "
            f"the last class is {len(spec.class_names) - 1}"
        )
    return LabelledImages(images, labels.astype(np.int64))


def _reader(folder: Path, download: Download, dims: tuple[int, ...]) -> ArrayReader | MappedReader:
    path = idx_file(folder, download)
    if path is None:
        raise UserError(f"{folder / download.name} is missing")
    # The header: two zeros, 8 for unsigned bytes, the number of sizes, the sizes.
    header = struct.pack(f">BBBB{len(dims)}I", 0, 0, 8, len(dims), *dims)
    size = len(header) + int(np.prod(dims))
    shape = (1, *dims[1:]) if len(dims) == 3 else (1, 1, 1)
    if path.suffix == ".gz":
        # MNIST's files have the same names; only the checksum tells them apart.
        verify(path, download)
        content = gunzip(path, size)
        _check(path, content[: len(header)], header, len(content), size)
        pixels = np.frombuffer(content, np.uint8, offset=len(header))
        return ArrayReader(pixels.reshape(dims[0], *shape))
    with cannot(f"read {path}"), path.open("rb") as file:
        _check(path, file.read(len(header)), header, path.stat().st_size, size)
    return MappedReader((Piece(path.absolute(), dims[0], offset=len(header)),), shape)


def _check(path: Path, own_header: bytes, header: bytes, length: int, size: int) -> None:
    if own_header != header or length != size:
        raise UserError(
            f"{path} is not the official file: it should be an idx file of {size:,} bytes, "
            f"and has {length:,}" + ("" if own_header == header else " and another header")
        )

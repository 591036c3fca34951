"""CIFAR-10 and CIFAR-100 in their official binary format."""

from pathlib import Path

import numpy as np

from prnas.data.catalog import CifarSpec, find
from prnas.data.download import download, without_network
from prnas.data.readers import ImageSet, LabelledImages, MappedReader, Piece, Say
from prnas.data.unpack import unpack_tar
from prnas.io.checked_files import read_file
from prnas.io.errors import UserError, cannot

_SHAPE = (3, 32, 32)
_MOST_NAMES = 100_000  # Bytes of the list of class names.


def read_cifar(spec: CifarSpec, root: Path, say: Say) -> ImageSet:
    """The set in `root`: unpacked there, as its archive, or else downloaded."""
    folder = find(spec, root) or _unpacked(spec, root, say)
    train, test = (_split(spec, folder, names) for names in (spec.train, spec.test))
    return ImageSet(train, test, _class_names(spec, folder))


def _unpacked(spec: CifarSpec, root: Path, say: Say) -> Path:
    names = ", ".join(spec.files)
    files = f"{spec.archive.name}, or the folder {spec.folder} from it (with {names})"
    archive = download(spec.archive, root, say, without_network(files, root))
    sizes = spec.files | {spec.names_file: _MOST_NAMES}
    unpack_tar(archive, spec.folder, sizes, root / spec.folder)
    folder = find(spec, root)
    if folder is None:
        raise UserError(f"{archive} does not hold {names}")
    return folder


def _split(spec: CifarSpec, folder: Path, names: tuple[str, ...]) -> LabelledImages:
    record = spec.label_bytes + int(np.prod(_SHAPE))
    pieces: list[Piece] = []
    labels: list[np.ndarray] = []
    for path in (folder / name for name in names):
        size = spec.files[path.name]
        with cannot(f"read {path}"):
            own_size = path.stat().st_size
            if own_size != size:
                raise UserError(f"{path} has {own_size:,} bytes; the official file has {size:,}")
            records = np.memmap(path, np.uint8, mode="r", shape=(size // record, record))
        own_labels = np.array(records[:, spec.label_bytes - 1], np.int64)
        if own_labels.max() >= spec.num_classes:
            raise UserError(
                f"{path} has label {own_labels.max()}; the last class is {spec.num_classes - 1}"
            )
        pieces.append(Piece(path.absolute(), size // record, skip=spec.label_bytes))
        labels.append(own_labels)
    return LabelledImages(MappedReader(tuple(pieces), _SHAPE), np.concatenate(labels))


def _class_names(spec: CifarSpec, folder: Path) -> tuple[str, ...]:
    """The names in the archive's list, or numbers where it is missing."""
    try:
        text = read_file(folder / spec.names_file, _MOST_NAMES).decode("utf-8", "replace")
    except OSError:
        text = ""
    names = tuple(text.split())
    return names if len(names) == spec.num_classes else tuple(map(str, range(spec.num_classes)))

"""The data sets that have names: contents, sources, licences, files. Light: no torch or numpy."""

import os
from dataclasses import dataclass
from pathlib import Path

from prnas.io.errors import UserError, suggestion
from prnas.io.paths import is_file, is_folder

KINDS = ("digits", "cifar10", "cifar100", "fashion-mnist", "folder:PATH", "npz:PATH")
ROOT_VARIABLE = "PRNAS_DATA"


@dataclass(frozen=True)
class Download:
    """A file on the web, with the MD5 checksum that its makers publish."""

    url: str
    md5: str
    most_bytes: int

    @property
    def name(self) -> str:
        return self.url.rsplit("/", 1)[1]


@dataclass(frozen=True)
class About:
    """Facts about a set for people."""

    train: int
    test: int
    shape: tuple[int, int, int]
    classes: int
    what: str
    source: str
    licence: str


@dataclass(frozen=True)
class CifarSpec:
    """A set in CIFAR's binary format: records of label bytes and a 32x32 colour image."""

    archive: Download
    folder: str  # Inside the archive.
    train: tuple[str, ...]
    test: tuple[str, ...]
    images_per_file: tuple[int, int]  # In the training and in the test part.
    names_file: str
    label_bytes: int  # Bytes before an image, of which the last is its class.
    num_classes: int

    @property
    def files(self) -> dict[str, int]:
        """The required files and their exact sizes."""
        record = self.label_bytes + 3 * 32 * 32
        train, test = self.images_per_file
        sizes = dict.fromkeys(self.train, train * record)
        return sizes | dict.fromkeys(self.test, test * record)


@dataclass(frozen=True)
class IdxSpec:
    """A set in the idx format: images and labels, for training and for testing."""

    folder: str
    train: tuple[Download, Download]
    test: tuple[Download, Download]
    numbers: tuple[int, int]  # Numbers of training and of test images.
    size: tuple[int, int]
    class_names: tuple[str, ...]

    @property
    def downloads(self) -> tuple[Download, ...]:
        return (*self.train, *self.test)


def _cifar(name: str, md5: str) -> Download:
    return Download(f"https://www.cs.toronto.edu/~kriz/{name}-binary.tar.gz", md5, 200_000_000)


def _fashion(name: str, md5: str) -> Download:
    host = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
    return Download(f"{host}/{name}-ubyte.gz", md5, 40_000_000)


SPECS: dict[str, CifarSpec | IdxSpec] = {
    "cifar10": CifarSpec(
        _cifar("cifar-10", "c32a1d4ab5d03f1284b67883e8d87530"),
        folder="cifar-10-batches-bin",
        train=tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
        test=("test_batch.bin",),
        images_per_file=(10_000, 10_000),
        names_file="batches.meta.txt",
        label_bytes=1,
        num_classes=10,
    ),
    "cifar100": CifarSpec(
        _cifar("cifar-100", "03b5dce01913d631647c71ecec9e9cb8"),
        folder="cifar-100-binary",
        train=("train.bin",),
        test=("test.bin",),
        images_per_file=(50_000, 10_000),
        names_file="fine_label_names.txt",
        label_bytes=2,
        num_classes=100,
    ),
    "fashion-mnist": IdxSpec(
        folder="fashion-mnist",
        train=(
            _fashion("train-images-idx3", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
            _fashion("train-labels-idx1", "25c81989df183df01b3e8a0aad5dffbe"),
        ),
        test=(
            _fashion("t10k-images-idx3", "bef4ecab320f06d8554ea6380940ec79"),
            _fashion("t10k-labels-idx1", "bb300cfdad3c16e7a12a480ee83cd310"),
        ),
        numbers=(60_000, 10_000),
        size=(28, 28),
        class_names=(
            *("T-shirt/top", "trouser", "pullover", "dress", "coat"),
            *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
        ),
    ),
}

_PHOTOGRAPHS = ("small photographs", "www.cs.toronto.edu/~kriz/cifar.html", "none stated")
_DIGITS = ("handwritten digits", "the UCI repository, doi.org/10.24432/C50P49", "CC BY 4.0")
_CLOTHING = ("articles of clothing", "github.com/zalandoresearch/fashion-mnist", "MIT")
ABOUT = {
    "digits": About(1438, 359, (1, 8, 8), 10, *_DIGITS),
    "cifar10": About(50_000, 10_000, (3, 32, 32), 10, *_PHOTOGRAPHS),
    "cifar100": About(50_000, 10_000, (3, 32, 32), 100, *_PHOTOGRAPHS),
    "fashion-mnist": About(60_000, 10_000, (1, 28, 28), 10, *_CLOTHING),
}


def check_name(name: str) -> None:
    """A `UserError` unless a set could have this name."""
    kind, _, path = name.partition(":")
    if name not in ABOUT and (kind not in ("folder", "npz") or not path.strip() or "\0" in path):
        raise UserError(f"no set of images is called '{name:.200}'." + _hint(name))


def _hint(name: str) -> str:
    """A hint on a name's meaning: people forget the kind in front of a path."""
    if is_folder(name):
        return f" For the folder, say folder:{name}"
    if name.endswith(".npz") and is_file(name):
        return f" For the file, say npz:{name}"
    return suggestion(name, KINDS)


def default_root() -> Path:
    """The default folder of downloads: `PRNAS_DATA`, or in the platform's cache folder."""
    if chosen := os.environ.get(ROOT_VARIABLE):
        return Path(chosen)
    from platformdirs import user_cache_path

    return user_cache_path("prnas", appauthor=False) / "data"


def is_absent(name: str, root: str | None) -> bool:
    """Whether a set would have to be downloaded; `root` is the config's."""
    if name not in SPECS:
        return False
    return find(SPECS[name], default_root() if root is None else Path(root).expanduser()) is None


def find(spec: CifarSpec | IdxSpec, root: Path) -> Path | None:
    """The folder in `root`, or `root` itself, that holds all of a set's unpacked files."""
    for folder in (root / spec.folder, root):
        if isinstance(spec, CifarSpec):
            complete = all((folder / name).is_file() for name in spec.files)
        else:
            complete = all(idx_file(folder, download) for download in spec.downloads)
        if complete:
            return folder
    return None


def idx_file(folder: Path, download: Download) -> Path | None:
    """The path of an idx file, plain or compressed, if it is there."""
    for name in (download.name.removesuffix(".gz"), download.name):
        if (folder / name).is_file():
            return folder / name
    return None

"""A folder of image files, with a folder inside it for each class."""

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from prnas.data.image_files import BrokenPictureError, endings, files_in, is_grey, read_picture
from prnas.data.readers import ArrayReader, FileReader, ImageSet, LabelledImages, Say, Shape
from prnas.data.split import stratified
from prnas.io.errors import UserError
from prnas.io.paths import exists, is_file
from prnas.io.progress import bar

DEFAULT_SIZE = 32
_TRAIN = "train"
_TESTS = ("test", "val", "valid", "validation")  # The first that exists is the test part.
_MOST_NAMED = 5  # Number of broken images that a message names.

Broken = dict[Path, BrokenPictureError]


@dataclass(frozen=True)
class FolderOptions:
    size: int
    test_share: float
    skip_broken: bool
    threads: int  # Number of threads that decode a set into memory.
    fits: Callable[[int], bool]  # Whether a set of so many bytes is read into memory.
    say: Say


@dataclass(frozen=True)
class ImageFile:
    """A file of a folder."""

    path: Path
    label: int
    key: bytes  # Class and name, on which the automatic split depends.
    test: bool = False


def read_folder(path: Path, options: FolderOptions) -> ImageSet:
    """The images of a folder, in memory or read when they are needed."""
    files, class_names = list_folder(path, options.test_share, options.say)
    grey, broken = _scan(files)
    files = _without(files, broken, options)
    # A single coloured image makes the whole set coloured.
    shape = (1 if all(grey.values()) else 3, options.size, options.size)
    in_memory = options.fits(len(files) * int(np.prod(shape)))
    splits: list[LabelledImages] = []
    for of_test in (False, True):
        chosen = [file for file in files if file.test == of_test]
        if in_memory:
            pixels, damaged = _decode(chosen, shape, options)
            if damaged:
                pixels = pixels[[file.path not in damaged for file in chosen]]
                chosen = _without(chosen, damaged, options)
                broken |= damaged
            reader = ArrayReader(pixels)
        else:
            reader = FileReader(tuple(file.path for file in chosen), shape)
        splits.append(LabelledImages(reader, np.array([file.label for file in chosen], np.int64)))
    if broken:
        what = "1 broken image" if len(broken) == 1 else f"{len(broken)} broken images"
        options.say(f"skipped {what}: {_names(broken)}")
    train, test = splits
    counts = np.bincount(train.labels, minlength=len(class_names))
    if not counts.all():
        raise UserError(f"{path}: class '{class_names[counts.argmin()]}' has no training image")
    if not len(test.labels):
        raise UserError(f"{path}: the test part has no image")
    return ImageSet(train, test, class_names)


def list_folder(path: Path, test_share: float, say: Say) -> tuple[list[ImageFile], tuple[str, ...]]:
    """The image files, in an order that does not depend on the file system; and the classes."""
    if not path.is_dir():
        raise UserError(f"folder:{path}: there is no such folder")
    try:
        return _list(path.absolute(), test_share, say)
    except OSError as error:
        raise UserError(f"cannot read {error.filename or path}: {error.strerror}") from None


def _list(path: Path, test_share: float, say: Say) -> tuple[list[ImageFile], tuple[str, ...]]:
    inside = {folder.name: folder for folder in _folders(path)}
    apart = _TRAIN in inside and set(inside) <= {_TRAIN, *_TESTS}
    train_folder = inside[_TRAIN] if apart else path
    class_folders = _folders(train_folder)
    if len(class_folders) < 2:
        raise UserError(
            f"{train_folder} needs a folder of images for each of at least two classes; "
            f"it has {len(class_folders)}"
        )
    labels = {folder.name: label for label, folder in enumerate(class_folders)}
    names = tuple(_readable(name) for name in labels)
    ignored: Counter[str] = Counter()
    files = list(_images(class_folders, labels, ignored))
    if not files:
        raise UserError(f"{train_folder} holds no image files")
    test_names = [name for name in _TESTS if name in inside] if apart else []
    if test_names:
        test_folders = _folders(inside[test_names[0]])
        if strange := [folder.name for folder in test_folders if folder.name not in labels]:
            raise UserError(
                f"{inside[test_names[0]]} has the class '{_readable(strange[0])}', which "
                f"{train_folder} has not"
            )
        files += [replace(file, test=True) for file in _images(test_folders, labels, ignored)]
        if len(test_names) > 1:
            unused = ", ".join(test_names[1:])
            say(f"{path}: '{test_names[0]}' is the test part; not used: {unused}")
    else:
        all_labels = np.array([file.label for file in files], np.int64)
        _, chosen = stratified(all_labels, [file.key for file in files], test_share, names)
        for index in chosen:
            files[index] = replace(files[index], test=True)
    beside = [entry for entry in train_folder.iterdir() if entry.name[0] != "." and is_file(entry)]
    if beside:
        names_of = ", ".join(_readable(entry.name) for entry in sorted(beside)[:3])
        more = ", …" if len(beside) > 3 else ""
        what = "file" if len(beside) == 1 else "files"
        say(f"{path}: ignored {len(beside)} {what} beside the classes' folders ({names_of}{more})")
    if ignored:
        kinds = ", ".join(f"{number} {kind}" for kind, number in ignored.most_common(5))
        number = ignored.total()
        what = "file that is not an image" if number == 1 else "files that are not images"
        say(f"{path}: ignored {number} {what} ({kinds})")
    return files, names


def _folders(path: Path) -> list[Path]:
    return sorted(folder for folder in path.iterdir() if folder.is_dir() and folder.name[0] != ".")


def _images(
    folders: Iterable[Path], labels: dict[str, int], ignored: Counter[str]
) -> Iterator[ImageFile]:
    for folder in folders:
        for path in files_in(folder, onerror=_raise):
            ending = path.suffix.lower()
            # Reading a pipe or a device might never end; reading what is not there gives its error.
            if ending in endings() and (is_file(path) or not exists(path)):
                relative = path.relative_to(folder.parent).as_posix()
                yield ImageFile(path, labels[folder.name], os.fsencode(relative))
            else:
                ignored[_readable(ending) or "without an ending"] += 1


def _raise(error: OSError) -> None:
    raise error


def _readable(name: str) -> str:
    """A name as text: bytes that are not UTF-8 are spelt out."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _scan(files: list[ImageFile]) -> tuple[dict[Path, bool], Broken]:
    """Whether each image is grey, and the errors of those that cannot even be opened."""
    grey: dict[Path, bool] = {}
    broken: Broken = {}
    with bar("looking at images", len(files)) as progress:
        for file in files:
            try:
                grey[file.path] = is_grey(file.path)
            except BrokenPictureError as error:
                broken[file.path] = error
            progress.advance()
    return grey, broken


def _decode(
    files: list[ImageFile], shape: Shape, options: FolderOptions
) -> tuple[np.ndarray, Broken]:
    """The pixels of all images, and the images that cannot be decoded."""
    pixels = np.zeros((len(files), *shape), np.uint8)
    broken: Broken = {}

    def decode(index: int) -> None:
        path = files[index].path
        try:
            pixels[index] = read_picture(path, shape[1], shape[0])
        except BrokenPictureError as error:
            broken[path] = error

    # Threads are enough here: Pillow decodes without holding Python's lock.
    with (
        bar("reading images", len(files)) as progress,
        ThreadPoolExecutor(max(1, options.threads)) as threads,
        warnings.catch_warnings(action="ignore"),  # Pillow's; what matters is refused.
    ):
        for _ in threads.map(decode, range(len(files))):
            progress.advance()
    return pixels, broken


def _without(files: list[ImageFile], broken: Broken, options: FolderOptions) -> list[ImageFile]:
    """The files that are not broken; a `UserError` unless broken files are to be skipped."""
    if broken and not options.skip_broken:
        first = next(iter(broken.values()))
        what = f"{len(broken)} images cannot be read: {_names(broken)}"
        raise UserError(
            f"{first if len(broken) == 1 else what}. Repair or remove "
            f"{'it' if len(broken) == 1 else 'them'}, or leave such images out with --set "
            "data.broken=skip (of `prnas data`: --skip-broken)"
        )
    return [file for file in files if file.path not in broken]


def _names(broken: Broken) -> str:
    shown = [f"{path} ({broken[path].reason})" for path in sorted(broken)[:_MOST_NAMED]]
    more = len(broken) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")

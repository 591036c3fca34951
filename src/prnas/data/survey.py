"""A look at a set of images before it is read: how many, how large, grey or colour."""

from pathlib import Path
from statistics import median_low

import numpy as np

from prnas.config.choosing import ImageFacts
from prnas.config.sections import ImagesConfig
from prnas.data.catalog import ABOUT, check_name
from prnas.data.formats.folder import DEFAULT_SIZE, list_folder
from prnas.data.formats.npz import read_npz
from prnas.data.image_files import BrokenPictureError, look_at
from prnas.io.errors import UserError
from prnas.io.memory import free_memory
from prnas.io.paths import home_expanded

MOST_OPENED = 2_000  # Number of a folder's files that are looked at, evenly spaced.


def survey(config: ImagesConfig) -> ImageFacts:
    """The facts of the set that the config names. Nothing is downloaded, and no pixel decoded.

    Files that cannot be opened do not count: whoever reads the set says what is wrong with them.
    """
    check_name(config.name)
    kind, _, path = config.name.partition(":")
    if config.name in ABOUT:
        about = ABOUT[config.name]
        channels, height, width = about.shape
        share = tuple(about.train // about.classes for _ in range(about.classes))
        names = tuple(map(str, range(about.classes))) if config.name == "digits" else ()
        side = min(height, width)
        return ImageFacts(share, (side, side, side), channels, names, height == width)
    if kind == "npz":
        return _of_arrays(home_expanded(path), config)
    return _of_folder(home_expanded(path), config)


def shape_and_classes(config: ImagesConfig) -> tuple[tuple[int, int, int], int]:
    """Channels, height and width that a search of these images sees, and the number of classes."""
    facts = survey(config)
    kind, _, path = config.name.partition(":")
    if config.name in ABOUT:
        _, height, width = ABOUT[config.name].shape
    elif kind == "npz":
        images = read_npz(home_expanded(path), config.test_share, free_memory() / 2, lambda _: None)
        _, height, width = images.train.reader.shape
    else:
        height = width = DEFAULT_SIZE
    if config.image_size is not None:
        height = width = config.image_size
    return (facts.channels, height, width), len(facts.class_sizes)


def _of_arrays(path: Path, config: ImagesConfig) -> ImageFacts:
    images = read_npz(path, config.test_share, free_memory() / 2, lambda note: None)
    channels, height, width = images.train.reader.shape
    sizes = np.bincount(images.train.labels, minlength=len(images.class_names))
    side = min(height, width)
    names = () if images.numbered else images.class_names  # A number says nothing of its class.
    sides = (side, side, side)
    return ImageFacts(tuple(sizes.tolist()), sides, channels, names, height == width)


def _of_folder(path: Path, config: ImagesConfig) -> ImageFacts:
    if not path.is_dir():
        raise UserError(
            f"folder:{path}: there is no such folder. Say which images are meant: --data "
            "folder:PATH, with a folder inside for each class"
        )
    files, class_names = list_folder(path, config.test_share, lambda note: None)
    train = [file for file in files if not file.test]
    step = -(-len(train) // MOST_OPENED)
    sides: list[int] = []
    all_grey = True
    for file in train[::step]:
        try:
            width, height, grey = look_at(file.path)
        except BrokenPictureError:
            continue
        sides.append(min(width, height))
        all_grey = all_grey and grey
    if not sides:
        raise UserError(f"{path}: none of its images can be read")
    sizes = np.bincount([file.label for file in train], minlength=len(class_names))
    return ImageFacts(
        tuple(sizes.tolist()),
        (min(sides), median_low(sides), max(sides)),
        1 if all_grey else 3,
        class_names,
    )

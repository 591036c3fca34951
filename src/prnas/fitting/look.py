"""A look at the images, in plain sentences: how many, which classes, broken ones, copies."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from prnas.config.choosing import ImageFacts
from prnas.data.dataset import DataSet, Images
from prnas.data.formats.folder import ImageFile, list_folder
from prnas.data.image_files import BrokenPictureError, read_picture
from prnas.fitting.variants import UNEVEN
from prnas.io.paths import home_expanded

MOST_COMPARED = 200_000  # Images; more are not compared with each other.
MOST_NAMED = 3  # Classes or files that a sentence names.
FEW_IN_CLASS = 20
_BATCH = 256


@dataclass(frozen=True)
class Copies:
    """Images whose pixels are those of another one, as the network sees them."""

    images: int = 0  # Beyond the first of each.
    in_both_splits: int = 0  # Test images that are among the training images, too.
    of_two_classes: int = 0  # Images of which the same pixels have another class elsewhere.
    compared: bool = True


def find_copies(data: DataSet) -> Copies:
    """Images that are there more than once."""
    if len(data.train) + len(data.test) > MOST_COMPARED:
        return Copies(compared=False)
    seen: dict[bytes, set[int]] = {}
    train_digests: set[bytes] = set()
    number = in_both = 0
    keys: list[bytes] = []
    for split in (data.train, data.test):
        for digest, label in zip(_digests(split), split.labels.tolist(), strict=True):
            number += digest in seen
            seen.setdefault(digest, set()).add(label)
            keys.append(digest)
            if split is data.test:
                in_both += digest in train_digests
            else:
                train_digests.add(digest)
    strange = sum(len(seen[digest]) > 1 for digest in keys)
    return Copies(number, in_both, strange)


def _digests(images: Images) -> list[bytes]:
    digests: list[bytes] = []
    for _, pixels in images.batches(torch.arange(len(images)), _BATCH):
        rows = pixels.cpu().contiguous().numpy()
        digests += [hashlib.sha256(row.tobytes()).digest() for row in rows]
    return digests


def sentences(
    facts: ImageFacts, data: DataSet, copies: Copies, notes: Sequence[str] = ()
) -> list[str]:
    """A description of the images in sentences. `notes` come from reading them: broken files, …"""
    train, test = len(data.train), len(data.test)
    counts = torch.bincount(data.train.labels, minlength=data.num_classes).tolist()
    few, many = min(counts), max(counts)
    rare, common = (data.class_names[counts.index(number)] for number in (few, many))
    low, middle, high = facts.sides
    size = f"{low} pixels" if low == high else f"{low} to {high} pixels, {middle} typically"
    kind = {1: "grey", 3: "in colour"}.get(facts.channels, f"of {facts.channels} channels")
    lines = [
        f"{train + test:,} images of {data.num_classes} classes: {train:,} to train with, {test:,} "
        "held out for the test.",
        f"They are {kind}; the short side is {size}.",
    ]
    if few == many:
        lines.append(f"Every class has {few:,} images to train with.")
    else:
        uneven = " That is uneven." if many >= UNEVEN * max(few, 1) else ""
        lines.append(
            f"A class has from {few:,} ('{rare:.40}') to {many:,} ('{common:.40}') images to train "
            f"with.{uneven}"
        )
    if few < FEW_IN_CLASS:
        lines.append(f"{few:,} images of a class are few: what is learned of it may be chance.")
    lines += [f"{note[:1].upper()}{note[1:]}." for note in notes]
    lines += _about_copies(copies, test)
    return lines


def _about_copies(copies: Copies, test: int) -> list[str]:
    if not copies.compared:
        return ["They are too many to look for copies."]
    if not copies.images:
        return ["No image is there twice."]
    lines = [f"Copies of others, to the pixel: {_counted(copies.images, 'image')}."]
    if copies.in_both_splits:
        share = copies.in_both_splits / max(test, 1)
        lines.append(
            f"Among the training images, too: {_counted(copies.in_both_splits, 'test image')} "
            f"({100 * share:.0f} %), so that the test looks better than it is."
        )
    if copies.of_two_classes:
        lines.append(
            "With the pixels of an image of another class, so that one of the two is wrong: "
            f"{_counted(copies.of_two_classes, 'image')}."
        )
    return lines


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def names_in_test(name: str, test_share: float, data: DataSet) -> list[str]:
    """The name of every test image: a file's path within its folder, or a number."""
    kind, _, path = name.partition(":")
    number = len(data.test)
    if kind == "folder":
        folder = home_expanded(path)
        files, _ = list_folder(folder, test_share, lambda note: None)
        files = [file for file in files if file.test]
        if len(files) != number:
            files = [file for file in files if _readable(file, data)]
        if len(files) == number:
            return [_relative(file.path, folder.absolute()) for file in files]
    return [f"test image {index + 1}" for index in range(number)]


def _readable(file: ImageFile, data: DataSet) -> bool:
    try:
        read_picture(file.path, data.shape[1], data.shape[0])
    except BrokenPictureError:
        return False
    return True


def _relative(path: Path, folder: Path) -> str:
    """Bytes of a name that are no text are spelt out."""
    within = path.relative_to(folder) if path.is_relative_to(folder) else path
    return str(within).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")

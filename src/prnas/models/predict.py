"""Predictions of a trained model for image files."""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from prnas.data.image_files import BrokenPictureError, endings, files_in, read_picture
from prnas.io.errors import UserError
from prnas.io.paths import is_folder
from prnas.models.card import ModelCard
from prnas.models.inference import Forward, evaluating
from prnas.models.model import Model

BATCH = 64
_THREADS = 4  # Threads that decode; Pillow does it without holding Python's lock.


@dataclass(frozen=True, slots=True)
class ClassScore:
    """A class, and its probability according to the model."""

    name: str
    probability: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """The most probable classes of an image, the most probable one first."""

    path: Path
    classes: tuple[ClassScore, ...]

    def to_json(self) -> dict[str, Any]:
        return {"path": str(self.path), "classes": [asdict(score) for score in self.classes]}


@dataclass(frozen=True, slots=True)
class ImageFiles:
    """Image files; folders that cannot be read; the number of other files."""

    paths: tuple[Path, ...]
    broken: tuple[BrokenPictureError, ...] = ()
    ignored: int = 0


@dataclass(frozen=True, slots=True)
class Predictions:
    """All predictions, in order; what could not be read; the number of other files."""

    predictions: tuple[Prediction, ...]
    broken: tuple[BrokenPictureError, ...]
    ignored: int


def predict(
    model: Model,
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    top: int = 1,
    batch: int = BATCH,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Predictions:
    """The `top` classes of image files, and of those in folders, with their probabilities.

    A file that cannot be read is among `broken`, and does not stop the others.
    """
    files = find_images(map(Path, [paths] if isinstance(paths, str | os.PathLike) else paths))
    predictions: list[Prediction] = []
    broken = list(files.broken)
    for number, result in enumerate(predict_each(model, files.paths, top=top, batch=batch), 1):
        if isinstance(result, Prediction):
            predictions.append(result)
        else:
            broken.append(result)
        progress("looking at images", number, len(files.paths))
    return Predictions(tuple(predictions), tuple(broken), files.ignored)


def predict_each(
    model: Model, paths: Iterable[Path], *, top: int = 1, batch: int = BATCH
) -> Iterator[Prediction | BrokenPictureError]:
    """A prediction, or an error, for one file after the other."""
    check_card(model.card)
    if top < 1:
        raise UserError(f"the number of classes per image must be 1 or more, got {top}")
    return _predict_each(Forward(model, batch), list(paths), min(top, model.card.num_classes))


def check_card(card: ModelCard) -> None:
    """A `UserError` for a model whose input is not that of image files."""
    if card.input_shape[0] not in (1, 3):
        raise UserError(
            f"the model takes images of {card.input_shape[0]} channels; those in image files are "
            "grey (1) or coloured (3)"
        )


def find_images(paths: Iterable[Path]) -> ImageFiles:
    """The files among `paths`, and in folders all that are images by their ending, sorted.

    Hidden files are left out, and links to folders are not followed.
    """
    files: list[Path] = []
    broken: list[BrokenPictureError] = []
    ignored = 0

    def unreadable(error: OSError) -> None:
        broken.append(BrokenPictureError(Path(error.filename), error.strerror or str(error)))

    for path in paths:
        if not is_folder(path):
            files.append(path)
            continue
        for file in files_in(path, onerror=unreadable):
            if file.suffix.lower() in endings() and _may_be_file(file):
                files.append(file)
            else:
                ignored += 1
    return ImageFiles(tuple(files), tuple(broken), ignored)


def _may_be_file(path: Path) -> bool:
    """Whether to read a path: a pipe would never end, and a forbidden file gives its error."""
    try:
        return path.is_file()
    except OSError:
        return True


def _predict_each(
    forward: Forward, paths: list[Path], top: int
) -> Iterator[Prediction | BrokenPictureError]:
    model, size = forward.model, forward.batch
    with ThreadPoolExecutor(_THREADS) as threads:
        for start in range(0, len(paths), size):
            batch = paths[start : start + size]
            with warnings.catch_warnings(action="ignore"):  # Pillow's; what matters is refused.
                images = list(threads.map(lambda path: _read(path, model.card), batch))
            pixels = [image for image in images if not isinstance(image, BrokenPictureError)]
            scores: Iterator[tuple[ClassScore, ...]] = iter(())
            if pixels:
                with evaluating(model):
                    logits = forward(torch.from_numpy(np.stack(pixels)))
                scores = _scores(logits, model.class_names, top)
            for path, image in zip(batch, images, strict=True):
                broken = isinstance(image, BrokenPictureError)
                yield image if broken else Prediction(path, next(scores))


def _read(path: Path, card: ModelCard) -> NDArray[np.uint8] | BrokenPictureError:
    channels, height, width = card.input_shape
    try:
        return read_picture(path, (height, width), channels)
    except BrokenPictureError as error:
        return error


def _scores(
    logits: torch.Tensor, names: tuple[str, ...], top: int
) -> Iterator[tuple[ClassScore, ...]]:
    # Sorted by logits: close ones can become equal as probabilities.
    order = logits.sort(dim=1, descending=True, stable=True).indices[:, :top]
    probabilities = logits.softmax(1).gather(1, order)
    for values, indices in zip(probabilities.tolist(), order.tolist(), strict=True):
        yield tuple(map(ClassScore, (names[index] for index in indices), values))

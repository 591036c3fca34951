"""Image files and what a trained model takes them for."""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from prnas.data.image_files import BrokenPictureError, endings, read_picture
from prnas.io.errors import UserError
from prnas.models.card import ModelCard
from prnas.models.inference import Forward
from prnas.models.model import Model

BATCH = 64
_THREADS = 4  # that decode; Pillow does it without holding Python's lock


@dataclass(frozen=True, slots=True)
class Guess:
    """A class, and the probability that the model gives it."""

    name: str
    probability: float


@dataclass(frozen=True, slots=True)
class Answer:
    """An image's most probable classes, the first one first."""

    path: Path
    guesses: tuple[Guess, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "path": str(self.path),
            "classes": [{"name": one.name, "probability": one.probability} for one in self.guesses],
        }


@dataclass(frozen=True, slots=True)
class Found:
    """Image files; folders that cannot be read; how many other files there are."""

    paths: tuple[Path, ...]
    broken: tuple[BrokenPictureError, ...] = ()
    ignored: int = 0


@dataclass(frozen=True, slots=True)
class Predictions:
    """All answers, in order; what could not be read; how many files are no images."""

    answers: tuple[Answer, ...]
    broken: tuple[BrokenPictureError, ...]
    ignored: int


def predict(
    model: Model,
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    top: int = 1,
    batch: int = BATCH,
    progress: Callable[[str, int, int], None] | None = None,
) -> Predictions:
    """The `top` classes of image files, and of those in folders, with their probabilities.

    A file that cannot be read is among `broken`, and does not stop the others.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found = find_images(Path(one) for one in given)
    answers: list[Answer] = []
    broken = list(found.broken)
    for number, one in enumerate(each(model, found.paths, top=top, batch=batch), 1):
        answers.append(one) if isinstance(one, Answer) else broken.append(one)
        if progress is not None:
            progress("looking at images", number, len(found.paths))
    return Predictions(tuple(answers), tuple(broken), found.ignored)


def each(
    model: Model, paths: Iterable[Path], *, top: int = 1, batch: int = BATCH
) -> Iterator[Answer | BrokenPictureError]:
    """An answer, or what is wrong, for one file after the other."""
    check_card(model.card)
    if top < 1:
        raise UserError(f"the number of classes to tell must be 1 or more, got {top}")
    return _each(Forward(model, batch), list(paths), min(top, model.card.num_classes))


def check_card(card: ModelCard) -> None:
    """A `UserError` for a model that image files cannot feed."""
    if card.input_shape[0] not in (1, 3):
        raise UserError(
            f"the model takes images of {card.input_shape[0]} channels; those in image files are "
            "grey (1) or coloured (3)"
        )


def find_images(paths: Iterable[Path]) -> Found:
    """Files as they are named; of folders, all inside that are images by their ending, sorted.

    Hidden files are left out, and links to folders are not followed.
    """
    files: list[Path] = []
    broken: list[BrokenPictureError] = []
    ignored = 0

    def unreadable(error: OSError) -> None:
        broken.append(BrokenPictureError(Path(error.filename), error.strerror or str(error)))

    for path in paths:
        if not _holds(path.is_dir):
            files.append(path)
            continue
        for inner, folders, names in os.walk(path, onerror=unreadable):
            folders[:] = sorted(one for one in folders if not one.startswith("."))
            for name in sorted(one for one in names if not one.startswith(".")):
                file = Path(inner, name)
                # A pipe would never end; what cannot even be looked at is told when it is read.
                if file.suffix.lower() in endings() and _holds(file.is_file, unknown=True):
                    files.append(file)
                else:
                    ignored += 1
    return Found(tuple(files), tuple(broken), ignored)


def _holds(test: Callable[[], bool], unknown: bool = False) -> bool:
    try:
        return test()
    except OSError:
        return unknown


def _each(forward: Forward, paths: list[Path], top: int) -> Iterator[Answer | BrokenPictureError]:
    model, size = forward.model, forward.batch
    was_training = model.training
    with ThreadPoolExecutor(_THREADS) as threads:
        for start in range(0, len(paths), size):
            some = paths[start : start + size]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Pillow's; what matters is refused
                read = list(threads.map(lambda path: _read(path, model.card), some))
            pixels = [one for one in read if not isinstance(one, BrokenPictureError)]
            guesses: Iterator[tuple[Guess, ...]] = iter(())
            if pixels:
                model.eval()
                logits = forward(torch.from_numpy(np.stack(pixels)))
                model.train(was_training)
                guesses = iter(_guesses(logits, model.class_names, top))
            for path, one in zip(some, read, strict=True):
                yield one if isinstance(one, BrokenPictureError) else Answer(path, next(guesses))


def _read(path: Path, card: ModelCard) -> NDArray[np.uint8] | BrokenPictureError:
    channels, height, width = card.input_shape
    try:
        return read_picture(path, (height, width), channels)
    except BrokenPictureError as error:
        return error


def _guesses(logits: torch.Tensor, names: tuple[str, ...], top: int) -> Iterator[tuple[Guess, ...]]:
    # By logits: close ones can become equal as probabilities.
    order = logits.sort(dim=1, descending=True, stable=True).indices[:, :top]
    probabilities = logits.softmax(1).gather(1, order)
    for values, places in zip(probabilities.tolist(), order.tolist(), strict=True):
        yield tuple(Guess(names[place], value) for place, value in zip(places, values, strict=True))

"""The evaluation of a trained model: accuracy, confusions, speed."""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from prnas.config.choices import DataPart
from prnas.data.dataset import DataSet, Images, load
from prnas.io.errors import UserError
from prnas.models import metrics
from prnas.models.confusions import Confusion, confusions
from prnas.models.inference import Forward, evaluating
from prnas.models.matching_data import check_fit, data_config, data_settings
from prnas.models.metrics import Counts
from prnas.models.model import Model
from prnas.models.speed import Speed, measure, synchronizer

Progress = Callable[[str, int, int], None]  # Name of a stage, amount done, total.
TOP = 5
MOST_CLASSES = 5_000  # The confusion matrix has the square of that.


@dataclass(frozen=True, slots=True)
class ClassResult:
    """A class: its number of images, and how many of them were recognised."""

    name: str
    images: int
    correct: int

    @property
    def accuracy(self) -> float | None:
        return self.correct / self.images if self.images else None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of testing a model on a set of images.

    `confusion[i][j]` is how many images of class i were taken for class j. `loss` is the mean
    cross-entropy in nats. `top5` is `None` with five classes or fewer, where it is always 1.
    """

    data: str
    part: DataPart
    class_names: tuple[str, ...]
    confusion: Counts
    loss: float
    top5: float | None
    device: str
    threads: int
    batch: int  # The largest that fitted into memory.
    seconds: float  # Duration of the pass over all images, reading included.
    speeds: tuple[Speed, ...]  # Speeds with a batch of 1 and of `batch`, if measured.

    @property
    def images(self) -> int:
        return sum(map(sum, self.confusion))

    @property
    def correct(self) -> int:
        return sum(row[index] for index, row in enumerate(self.confusion))

    @property
    def top1(self) -> float:
        return self.correct / self.images

    @property
    def top1_interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the accuracy on all such images (Wilson)."""
        return metrics.interval(self.correct, self.images)

    @property
    def classes(self) -> tuple[ClassResult, ...]:
        """All classes, in the order of their indices."""
        rows = enumerate(zip(self.class_names, self.confusion, strict=True))
        return tuple(ClassResult(name, sum(row), row[index]) for index, (name, row) in rows)

    def confusions(self, most: int = 10) -> tuple[Confusion, ...]:
        """The most frequent mistakes."""
        return confusions(self.confusion, most)

    def to_json(self) -> dict[str, Any]:
        """Plain data; the confusion matrix comes last."""
        return {
            "data": self.data,
            "part": self.part,
            "images": self.images,
            "top1": self.top1,
            "top1_interval_95": list(self.top1_interval),
            "top5": self.top5,
            "loss": self.loss,
            "device": self.device,
            "threads": self.threads,
            "batch": self.batch,
            "seconds": self.seconds,
            "speed": [speed.to_json() for speed in self.speeds],
            "classes": [
                {"name": each.name, "images": each.images, "right": each.correct}
                | {"accuracy": each.accuracy}
                for each in self.classes
            ],
            "confusion": [list(row) for row in self.confusion],
        }


def evaluate(
    model: Model,
    data: DataSet | str | None = None,
    *,
    part: DataPart = "test",
    batch: int = 128,
    speed: bool = True,
    progress: Progress = lambda what, done, total: None,
) -> Evaluation:
    """Test a model on a part of a set of images, as they are, on the model's device.

    `data` is a loaded set, the name of a set, or by default that of the model's training. `all` is
    both parts, for images that the model was not trained on. `speed` also measures the speed, in a
    few seconds. A `UserError` says what does not fit.
    """
    if part not in ("test", "train", "all"):
        raise UserError(f"part must be test, train or all, got {part!r:.60}")
    if model.card.num_classes > MOST_CLASSES:
        raise UserError(
            f"models of at most {MOST_CLASSES:,} classes can be tested; this one has "
            f"{model.card.num_classes:,}"
        )
    forward = Forward(model, batch)
    if isinstance(data, DataSet):
        return _evaluate(forward, data, part, speed, progress)
    config = data_config(model.card, data_settings(model.card, data))
    with closing(load(config, forward.device)) as loaded:
        return _evaluate(forward, loaded, part, speed, progress)


def _evaluate(
    forward: Forward, data: DataSet, part: DataPart, speed: bool, progress: Progress
) -> Evaluation:
    model = forward.model
    check_fit(model.card, data)
    chosen = {"test": [data.test], "train": [data.train], "all": [data.train, data.test]}[part]
    splits = [images for images in chosen if len(images)]
    if not splits:
        raise UserError(f"the {part} part of {data.name} has no images")
    with evaluating(model):
        start = time.perf_counter()
        confusion, loss, in_top = _pass(forward, splits, progress)
        seconds = time.perf_counter() - start
        speeds = _speeds(forward, splits[0], progress) if speed else ()
    total, device = int(confusion.sum()), forward.device
    return Evaluation(
        data=data.name,
        part=part,
        class_names=data.class_names,
        confusion=tuple(tuple(row) for row in confusion.tolist()),
        loss=loss / total,
        top5=in_top / total if data.num_classes > TOP else None,
        device=torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        threads=torch.get_num_threads(),
        batch=forward.batch,
        seconds=seconds,
        speeds=speeds,
    )


def _pass(forward: Forward, splits: list[Images], progress: Progress) -> tuple[Tensor, float, int]:
    """The confusion matrix, the sum of the losses, and the number of top-five hits."""
    loss, in_top = 0.0, 0
    predicted: list[Tensor] = []
    done, total = 0, sum(map(len, splits))
    progress("testing", 0, total)
    for images in splits:
        for indices, pixels in images.batches(torch.arange(len(images)), forward.batch):
            logits, labels = forward(pixels), images.labels[indices]
            predicted.append(logits.argmax(1))
            loss += metrics.loss_sum(logits, labels)
            in_top += int((metrics.ranks(logits, labels) < TOP).sum())
            done += len(indices)
            progress("testing", done, total)
    labels = torch.cat([images.labels for images in splits])
    classes = forward.model.card.num_classes
    return metrics.confusion_matrix(labels, torch.cat(predicted), classes), loss, in_top


def _speeds(forward: Forward, images: Images, progress: Progress) -> tuple[Speed, ...]:
    """Speeds of the network alone, from normalised images on the device to logits there."""
    sizes = sorted({1, forward.batch})
    speeds: list[Speed] = []
    for number, size in enumerate(sizes):
        progress("measuring speed", number, len(sizes))
        # Real images, since some values are slower than others; repeated if there are too few.
        pixels = images.fetch(torch.arange(size) % len(images))
        with torch.inference_mode():
            compute = partial(forward.model.network, forward.prepared(pixels))
            speeds.append(measure(compute, size, synchronizer(forward.device)))
    progress("measuring speed", len(sizes), len(sizes))
    return tuple(speeds)

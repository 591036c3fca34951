"""Metrics of a model: counts of right and wrong predictions, and arithmetic on them."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

Counts = tuple[tuple[int, ...], ...]
Z_95 = 1.959963984540054  # 95 % of a normal distribution are this many deviations around its mean


def ranks(logits: Tensor, labels: Tensor) -> Tensor:
    """The rank of each image's right class, from 0; among equals, the first class comes first."""
    own = logits.gather(1, labels[:, None])
    above = (logits > own).sum(1)
    classes = torch.arange(logits.shape[1], device=logits.device)
    equal_before = (logits == own) & (classes < labels[:, None])
    return above + equal_before.sum(1)


def confusion_matrix(labels: Tensor, predicted: Tensor, classes: int) -> Tensor:
    """The number of images of each class (row) that were taken for each class (column): int64."""
    pairs = torch.bincount(labels * classes + predicted, minlength=classes * classes)
    return pairs.view(classes, classes)


def loss_sum(logits: Tensor, labels: Tensor) -> float:
    """The cross-entropy of the images, in nats, added up in double precision."""
    return float(F.cross_entropy(logits.double(), labels, reduction="sum"))


def interval(right: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % interval of the true accuracy, if `right` of `total` images are right."""
    share, z2 = right / total, Z_95**2 / total
    middle = (share + z2 / 2) / (1 + z2)
    half = math.sqrt(z2 * (share * (1 - share) + z2 / 4)) / (1 + z2)
    return (0.0 if right == 0 else middle - half), (1.0 if right == total else middle + half)

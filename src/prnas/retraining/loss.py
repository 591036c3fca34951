"""The loss of a training: cross entropy, in which classes may weigh differently, or labels mix."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from prnas.data.augment_mixup import Mixed
from prnas.nets.devices import to_device


@dataclass(frozen=True, eq=False)
class Loss:
    """The mean cross entropy of a batch, each image weighed by its class if there are weights.

    The mean is over the images, not over their weights: so a batch's loss is what its share of a
    larger one would be, however its classes are distributed.
    """

    label_smoothing: float
    class_weights: Tensor | None = None  # one for each class, on the CPU

    def __call__(self, logits: Tensor, labels: Tensor, mixed: Mixed | None = None) -> Tensor:
        """The loss; of images that are `mixed`, the labels of both count, each by its share."""
        if mixed is not None:
            own = mixed.shares * self._of_each(logits, labels)
            others = (1 - mixed.shares) * self._of_each(logits, labels[mixed.partners])
            return (own + others).mean()
        if self.class_weights is None:
            return F.cross_entropy(logits, labels, label_smoothing=self.label_smoothing)
        return self._of_each(logits, labels).mean()

    def _of_each(self, logits: Tensor, labels: Tensor) -> Tensor:
        smoothing = self.label_smoothing
        each = F.cross_entropy(logits, labels, label_smoothing=smoothing, reduction="none")
        if self.class_weights is None:
            return each
        weights = to_device(self.class_weights, logits.device).to(each.dtype)
        return each * weights[labels]


def balanced_weights(labels: Tensor, classes: int) -> Tensor:
    """A weight for each class, so that all classes together weigh the same: mean 1 over images.

    A class without images has none to weigh, and weight 0.
    """
    counts = torch.bincount(labels, minlength=classes).double()
    present = int((counts > 0).sum())
    weights = len(labels) / (present * counts)
    return torch.where(counts > 0, weights, 0.0)

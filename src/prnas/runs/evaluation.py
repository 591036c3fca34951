"""Loss, accuracy and confusion matrix of a network under training, on images as they are."""

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prnas.data.augment import plain
from prnas.data.dataset import Images
from prnas.io.memory import is_out_of_memory, recover_memory
from prnas.nets.devices import to_device
from prnas.runs import faults
from prnas.runs.events import Validating
from prnas.runs.state import Tally

if TYPE_CHECKING:
    from prnas.runs.run import AnyRun


@torch.no_grad()
def evaluate(
    run: "AnyRun", module: nn.Module, images: Images, indices: Tensor
) -> tuple[Tally, Tensor]:
    """Evaluate with running statistics, on images without augmentation, in all processes together.

    The confusion matrix counts images of class i (rows) that were classified as class j.
    """
    module.eval()
    tally = Tally()
    classes = run.data.num_classes
    confusion = torch.zeros(classes * classes, dtype=torch.int64)
    own = indices[run.processes.rank :: run.processes.size]
    while tally.images < len(own):
        batch = own[tally.images : tally.images + run.validation_batch]
        predicted = None
        try:
            predicted = predict(run, module, images, batch)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error) or run.validation_batch == 1:
                raise
        if predicted is None:  # the error is let go by now, and what it held
            recover_memory()
            run.validation_batch = -(-run.validation_batch // 2)
            continue
        loss, classified_as = predicted
        labels = images.labels[batch]
        tally.add(loss, float((classified_as == labels).sum()), len(batch))
        confusion += torch.bincount(labels * classes + classified_as, minlength=classes * classes)
        run.emit("on_validating", Validating(tally.images, len(own)))
        # A single process may stop here; several stop together, after the next step.
        if run.processes.size == 1:
            run.stop_on_signal()
    loss, correct, number = run.processes.sum([tally.loss, tally.correct, float(tally.images)])
    if not math.isfinite(loss):
        raise faults.not_finite(run, run.weights_part, "validation loss")
    if run.processes.size > 1:
        confusion = torch.tensor(run.processes.sum(confusion.tolist()), dtype=torch.int64)
    run.probe.reset()  # the next batch size follows from training, not from this
    return Tally(loss, correct, int(number)), confusion.view(classes, classes)


def predict(
    run: "AnyRun", module: nn.Module, images: Images, indices: Tensor
) -> tuple[float, Tensor]:
    """Mean loss, and the predicted classes."""
    pixels = plain(images.fetch(indices), run.normalization)
    labels = to_device(images.labels[indices], pixels.device)
    with run.processes.autocast():
        logits = module(pixels.to(run.processes.dtype))
        loss = F.cross_entropy(logits, labels)
    return float(loss), logits.argmax(1).cpu()

"""Before an export is done: the same logits as here, on random images."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from prnas.errors import UserError
from prnas.models.model import Model

BATCHES = (1, 3)  # other than the two images that programs are traced with
TOLERANCE = 1e-5


@dataclass(frozen=True, slots=True)
class Question:
    """A batch of images, as pixels from 0 to 1 and normalised, and what the model makes of it."""

    pixels: Tensor
    normalized: Tensor
    logits: Tensor

    def inputs(self, normalize: bool) -> Tensor:
        """What an export takes that normalises by itself, or not."""
        return self.pixels if normalize else self.normalized


def questions(model: Model) -> list[Question]:
    """Random images, always the same ones."""
    generator = torch.Generator().manual_seed(0)
    asked: list[Question] = []
    for batch in BATCHES:
        pixels = torch.rand(batch, *model.card.input_shape, generator=generator)
        with torch.inference_mode():
            logits = model(pixels)
            normalized = (pixels - model.mean) / model.std
        if not logits.isfinite().all():
            raise UserError(
                "the model is broken: its logits for random images are not finite numbers, so no "
                "export of it can be checked"
            )
        # Ordinary tensors, of which a tracer may take hold.
        asked.append(Question(pixels, normalized.clone(), logits.clone()))
    return asked


@dataclass(frozen=True, slots=True)
class Agreement:
    """The largest difference of logits, and the largest logit that there was."""

    difference: float
    logit: float


def compare(
    asked: Sequence[Question], answer: Callable[[Question], Tensor], what: str
) -> Agreement:
    """How far an export's logits are from the model's, at most.

    A `UserError` if that is more than 1e-5, or 1e-5 of the largest logit where that is over 1:
    rounding grows with the numbers.
    """
    largest = Agreement(0.0, 0.0)
    for question in asked:
        found, logits = answer(question), question.logits
        if found.shape != logits.shape:
            raise UserError(
                f"the check failed, nothing was written: {what} gives logits of shape "
                f"{tuple(found.shape)}, not {tuple(logits.shape)}"
            )
        difference = (found - logits).abs().max().item()
        logit = logits.abs().max().item()
        allowed = TOLERANCE * max(1.0, logit)
        if not difference <= allowed:  # also for a number that is none
            raise UserError(
                f"the check failed, nothing was written: for {len(logits)} random images, logits "
                f"of {what} differ by up to {difference:.2g}; {allowed:.2g} is allowed"
            )
        largest = Agreement(max(largest.difference, difference), max(largest.logit, logit))
    return largest


def batches_in_words() -> str:
    return " and ".join(map(str, BATCHES))

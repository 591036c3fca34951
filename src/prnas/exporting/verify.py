"""Before an export is done: the same logits as here, on random images."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from prnas.io.errors import UserError
from prnas.models.model import Model

BATCHES = (1, 3)  # other than the two images that programs are traced with
TOLERANCE = 1e-5
ROUNDINGS = 4  # two ways of computing the same, each with its own, and room for luck


@dataclass(frozen=True, slots=True)
class Question:
    """A batch of images, as pixels from 0 to 1 and normalised, and what the model makes of it.

    `rounding` is how far its logits are from those in double precision.
    """

    pixels: Tensor
    normalized: Tensor
    logits: Tensor
    rounding: float

    @property
    def largest_logit(self) -> float:
        return self.logits.abs().max().item()

    @property
    def allowed(self) -> float:
        """1e-5, of the largest logit where that is over 1; but no less than rounding may make."""
        allowed = TOLERANCE * max(1.0, self.largest_logit)
        return max(allowed, ROUNDINGS * self.rounding)

    def inputs(self, normalize: bool) -> Tensor:
        """What an export takes that normalises by itself, or not."""
        return self.pixels if normalize else self.normalized


def questions(model: Model) -> list[Question]:
    """Random images, always the same ones."""
    generator = torch.Generator().manual_seed(0)
    exact = copy.deepcopy(model).double()
    asked: list[Question] = []
    for batch in BATCHES:
        pixels = torch.rand(batch, *model.card.input_shape, generator=generator)
        with torch.no_grad():
            logits = model(pixels)
            normalized = (pixels - model.mean) / model.std
            rounding = (logits - exact(pixels.double())).abs().max().item()
        if not logits.isfinite().all():
            raise UserError(
                "the model is broken: its logits for random images are not finite numbers, so no "
                "export of it can be checked"
            )
        asked.append(Question(pixels, normalized, logits, rounding))
    return asked


@dataclass(frozen=True, slots=True)
class Agreement:
    """The largest difference of logits, the largest logit, and the largest error by rounding."""

    difference: float
    logit: float
    rounding: float


def compare(
    asked: Sequence[Question], answer: Callable[[Question], Tensor], what: str
) -> Agreement:
    """How far an export's logits are from the model's, at most.

    A `UserError` if that is more than is allowed.
    """
    differences: list[float] = []
    for question in asked:
        found, logits = answer(question), question.logits
        if found.shape != logits.shape:
            raise UserError(
                f"the check failed, nothing was written: {what} gives logits of shape "
                f"{tuple(found.shape)}, not {tuple(logits.shape)}"
            )
        difference = (found - logits).abs().max().item()
        if not difference <= question.allowed:  # also for a number that is none
            raise UserError(
                f"the check failed, nothing was written: for {len(logits)} random images, logits "
                f"of {what} differ by up to {difference:.2g}; {question.allowed:.2g} is allowed"
            )
        differences.append(difference)
    return Agreement(
        max(differences),
        max(question.largest_logit for question in asked),
        max(question.rounding for question in asked),
    )


def batches_in_words() -> str:
    return " and ".join(map(str, BATCHES))

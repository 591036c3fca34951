"""Verification of an export before it is written: the model's logits, for random images."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from prnas.io.errors import UserError
from prnas.models.model import Model

BATCHES = (1, 3)  # Other sizes than that of the batch that programs are traced with.
TOLERANCE = 1e-5
ROUNDINGS = 4  # Two ways of computing the same round differently; twice of that is allowed.


@dataclass(frozen=True, slots=True)
class ReferenceBatch:
    """A batch of images, as pixels from 0 to 1 and normalised, and the model's logits for it."""

    pixels: Tensor
    normalized: Tensor
    logits: Tensor
    rounding: float  # the largest difference of the logits from those in double precision

    @property
    def largest_logit(self) -> float:
        return self.logits.abs().max().item()

    @property
    def allowed(self) -> float:
        """The largest allowed difference: 1e-5 (of the largest logit if over 1), or rounding."""
        allowed = TOLERANCE * max(1.0, self.largest_logit)
        return max(allowed, ROUNDINGS * self.rounding)

    def inputs(self, normalize: bool) -> Tensor:
        """The input of an export, which may include the normalisation."""
        return self.pixels if normalize else self.normalized


def reference_batches(model: Model) -> list[ReferenceBatch]:
    """Batches of random images, always the same."""
    generator = torch.Generator().manual_seed(0)
    exact = copy.deepcopy(model).double()
    batches: list[ReferenceBatch] = []
    for size in BATCHES:
        pixels = torch.rand(size, *model.card.input_shape, generator=generator)
        with torch.no_grad():
            logits = model(pixels)
            normalized = (pixels - model.mean) / model.std
            rounding = (logits - exact(pixels.double())).abs().max().item()
        if not logits.isfinite().all():
            raise UserError(
                "the model is broken: its logits for random images are not finite numbers, so no "
                "export of it can be checked"
            )
        batches.append(ReferenceBatch(pixels, normalized, logits, rounding))
    return batches


@dataclass(frozen=True, slots=True)
class Agreement:
    """The largest difference of logits, the largest logit, and the largest error by rounding."""

    difference: float
    logit: float
    rounding: float


def compare(
    batches: Sequence[ReferenceBatch], compute: Callable[[ReferenceBatch], Tensor], what: str
) -> Agreement:
    """The agreement of an export's logits with the model's; a `UserError` if they are too far."""
    differences: list[float] = []
    for batch in batches:
        exported, logits = compute(batch), batch.logits
        if exported.shape != logits.shape:
            raise UserError(
                f"the check failed, nothing was written: {what} gives logits of shape "
                f"{tuple(exported.shape)}, not {tuple(logits.shape)}"
            )
        difference = (exported - logits).abs().max().item()
        if not difference <= batch.allowed:  # The negation also catches NaN.
            raise UserError(
                f"the check failed, nothing was written: for {len(logits)} random images, logits "
                f"of {what} differ by up to {difference:.2g}; {batch.allowed:.2g} is allowed"
            )
        differences.append(difference)
    return Agreement(
        max(differences),
        max(batch.largest_logit for batch in batches),
        max(batch.rounding for batch in batches),
    )

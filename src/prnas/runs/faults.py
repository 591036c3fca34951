"""Messages for a run that is out of memory or has numbers that are not finite: what to try."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from prnas.io.errors import UserError

if TYPE_CHECKING:
    from prnas.runs.run import AnyRun


def out_of_memory(run: "AnyRun") -> UserError:
    return UserError(
        f"out of memory with a batch of {run.batch.batch} (the smallest is "
        f"{run.batch.rule.min}), {run.state.where}. The last checkpoint is kept: "
        + run.memory_advice
    )


def not_finite(run: "AnyRun", part: str, quantity: str) -> UserError:
    step = "network" if part == "weights" else part
    return UserError(
        f"the {quantity} of the {step} step is not a finite number "
        f"({run.state.where}){_located(run)}. The last checkpoint is kept. " + run.not_finite_advice
    )


def check_finite(run: "AnyRun") -> None:
    """Raise if the state holds numbers that are not finite: such a checkpoint would be useless."""
    if name := first_not_finite(run.state.tensors().items()):
        raise UserError(
            f"numbers that are not finite are in {name}, {run.state.where}. The last "
            "checkpoint is kept. " + run.not_finite_advice
        )


def _located(run: "AnyRun") -> str:
    """The first tensor that is not finite: causes come before what they spoil."""
    named = list(run.state.module.named_parameters())
    images = [("the images", images) for images in run.last_images.values()]
    gradients = [
        (f"the gradient of {name}", weight.grad)
        for name, weight in named
        if weight.grad is not None
    ]
    name = first_not_finite([*images, *named, *gradients, *run.state.tensors().items()])
    return f": first non-finite tensor: {name}" if name else ": all weights are finite"


def first_not_finite(tensors: Iterable[tuple[str, Tensor]]) -> str | None:
    """The name of the first tensor with a NaN or an infinite value, and how many it has."""
    for name, tensor in tensors:
        if tensor.is_floating_point():
            finite = torch.isfinite(tensor.detach())
            if not bool(finite.all()):
                return f"{name} ({int((~finite).sum()):,} of {tensor.numel():,} values)"
    return None

"""Numbers that are not finite: where they are."""

from collections.abc import Iterable

import torch
from torch import Tensor


def first_not_finite(tensors: Iterable[tuple[str, Tensor]]) -> str | None:
    """The name of the first tensor with a NaN or an infinite value, and how many it has."""
    for name, tensor in tensors:
        if tensor.is_floating_point():
            finite = torch.isfinite(tensor.detach())
            if not bool(finite.all()):
                return f"{name} ({int((~finite).sum()):,} of {tensor.numel():,} values)"
    return None

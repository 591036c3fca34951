"""Random smoothing (SDARTS-RS; Chen and Hsieh, 2020): weights that stand perturbed mixtures."""

from collections.abc import Sequence

import torch
from torch import Tensor

from prnas.nets.devices import to_device


def smoothed(
    mixing: Sequence[Tensor], radius: float, generator: torch.Generator | None
) -> list[Tensor]:
    """Mixing weights, each moved by up to `radius` at random, then brought back to a mixture.

    What falls below 0 is 0, and an edge's weights add up to 1 again; if all are 0, the one that
    was the largest is 1. With a radius of 0 nothing changes, not even by rounding, and nothing is
    drawn.
    """
    if radius == 0:
        return list(mixing)
    sizes = [len(edge) for edge in mixing]
    numbers = torch.rand(sum(sizes), generator=generator, dtype=torch.float64)
    noise = to_device((2 * numbers - 1).to(mixing[0].dtype) * radius, mixing[0].device)
    pairs = zip(mixing, noise.split(sizes), strict=True)
    return [_mixture((edge + moved).clamp(0, 1), edge) for edge, moved in pairs]


def _mixture(moved: Tensor, before: Tensor) -> Tensor:
    total = moved.sum()
    largest = torch.zeros_like(moved).scatter(0, before.argmax(0, keepdim=True), 1.0)
    return torch.where(total > 0, moved / total.clamp_min(torch.finfo(moved.dtype).tiny), largest)

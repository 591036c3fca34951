"""Mixup: images of a batch blended in pairs, and how much of each label they keep."""

from dataclasses import dataclass
from random import Random

import torch
from torch import Tensor

from prnas.nets.devices import to_device


@dataclass(frozen=True, eq=False)
class Mixed:
    """Images, each with `shares` of its own and the rest of that at `partners` in the batch."""

    images: Tensor
    partners: Tensor
    shares: Tensor


def mixup(
    images: Tensor,
    alpha: float,
    generator: torch.Generator,
    total: int | None = None,
    offset: int = 0,
) -> Mixed:
    """Blend normalised images (n x C x H x W) with others of the same batch.

    After Zhang et al., 2018 (arXiv:1710.09412). Shares are drawn from Beta(alpha, alpha) for each
    image. Of a pair, s and 1 - s are the same the other way round: the larger is taken, so that an
    image stays mostly itself. The images are those from `offset` on of a batch of `total` that
    several processes share; partners are of the same process.
    """
    number = len(images)
    total = number if total is None else total
    partners = torch.randperm(number, generator=generator)
    # PyTorch draws gamma and beta numbers from its global generator only.
    source = Random(int(torch.randint(2**62, (), generator=generator)))
    drawn = [source.betavariate(alpha, alpha) for _ in range(total)][offset : offset + number]
    shares = torch.tensor([max(share, 1 - share) for share in drawn], dtype=images.dtype)
    partners, shares = (to_device(tensor, images.device) for tensor in (partners, shares))
    own = shares[:, None, None, None]
    return Mixed(images * own + images[partners] * (1 - own), partners, shares)

"""Random colours and RandAugment: which operations an image gets, and how strongly."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from prnas.data import augment_operations as operations
from prnas.nets.devices import to_device

MOST_MAGNITUDE = 30
# At the greatest magnitude: how far from 1 factors are; degrees; amount; share of the side; bits.
_FACTOR, _DEGREES, _SHEAR, _SHIFT, _BITS = 0.9, 30.0, 0.3, 150 / 331, 4


@dataclass(frozen=True)
class ColorJitter:
    """Brightness, contrast and saturation, in this order, each times 1 - strength to 1 + strength.

    Three random numbers an image.
    """

    strength: float
    num_draws = 3

    def __call__(self, images: Tensor, draws: Tensor) -> Tensor:
        """`images` (uint8, n x C x H x W) by random numbers from 0 to 1, n x 3, on the CPU."""
        factors = 1 + self.strength * (2 * draws - 1)
        images = operations.brightness(images, factors[:, 0])
        images = operations.contrast(images, factors[:, 1])
        return operations.saturation(images, factors[:, 2])


# An operation of RandAugment: images, the magnitude from 0 to 1, the sign for each, the fill.
Kind = Callable[[Tensor, float, Tensor, Tensor], Tensor]
KINDS: dict[str, Kind] = {
    "identity": lambda x, level, signs, fill: x,
    "autocontrast": lambda x, level, signs, fill: operations.autocontrast(x),
    "equalize": lambda x, level, signs, fill: operations.equalize(x),
    "rotate": lambda x, level, signs, fill: operations.rotate(x, _DEGREES * level * signs, fill),
    "solarize": lambda x, level, signs, fill: operations.solarize(x, 256 - round(256 * level)),
    "posterize": lambda x, level, signs, fill: operations.posterize(x, 8 - round(_BITS * level)),
    "saturation": lambda x, level, signs, fill: operations.saturation(x, _factors(level, signs)),
    "contrast": lambda x, level, signs, fill: operations.contrast(x, _factors(level, signs)),
    "brightness": lambda x, level, signs, fill: operations.brightness(x, _factors(level, signs)),
    "sharpness": lambda x, level, signs, fill: operations.sharpness(x, _factors(level, signs)),
    "shear across": lambda x, level, signs, fill: operations.shear(x, _SHEAR * level * signs, fill),
    "shear down": lambda x, level, signs, fill: operations.shear(
        x, _SHEAR * level * signs, fill, down=True
    ),
    "shift across": lambda x, level, signs, fill: operations.translate(
        x, _SHIFT * level * signs, fill
    ),
    "shift down": lambda x, level, signs, fill: operations.translate(
        x, _SHIFT * level * signs, fill, down=True
    ),
}


def _factors(level: float, signs: Tensor) -> Tensor:
    return 1 + _FACTOR * level * signs


@dataclass(frozen=True)
class RandAugment:
    """`number` operations for each image, drawn evenly, all of one magnitude (0 to 30).

    After Cubuk et al., 2020 (arXiv:1909.13719). Where an operation has two directions, a random one
    is taken. Two random numbers an operation.
    """

    number: int
    magnitude: int
    fill: tuple[float, ...]  # Colour from 0 to 255 of what geometric operations bring in.

    @property
    def num_draws(self) -> int:
        return 2 * self.number

    def __call__(self, images: Tensor, draws: Tensor) -> Tensor:
        """`images` (uint8, n x C x H x W) by random numbers from 0 to 1, n x draws, on the CPU."""
        fill, level = torch.tensor(self.fill), self.magnitude / MOST_MAGNITUDE
        for turn in range(self.number):
            kinds = (draws[:, 2 * turn] * len(KINDS)).long()
            signs = torch.where(draws[:, 2 * turn + 1] < 0.5, -1.0, 1.0)
            images = images.clone()  # The caller's, and an operation's own, stay as they are.
            for index, kind in enumerate(KINDS.values()):
                # Found on the CPU, where the random numbers are: nobody waits for the device.
                own = (kinds == index).nonzero()[:, 0]
                if len(own):
                    there = to_device(own, images.device)
                    images[there] = kind(images[there], level, signs[own], fill)
        return images

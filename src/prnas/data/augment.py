"""Augmentation: random variation of each image, in whole batches on their device."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from prnas.config.retrain import RetrainDataConfig
from prnas.config.sections import ImagesConfig
from prnas.data.augment_random import ColorJitter, RandAugment
from prnas.data.dataset import Normalization
from prnas.nets.devices import to_device

# Random numbers for each image: flip, crop (down, right), centre of Cutout (down, right).
_DRAWS = 5


@dataclass(frozen=True)
class Augmentation:
    """RandAugment and random colours if asked for; pad and crop, flip, normalise, Cutout.

    Pixels that are cut out are zero after normalisation, which is the mean colour. So are pixels
    outside the image, as if they were padded after normalisation, which is the paper's order; or
    they are black, as in DARTS, which pads before it.
    """

    flip: bool
    crop_padding: int
    cutout: int  # Side of the square that is cut out; 0: none.
    normalization: Normalization
    padding_color: Literal["mean", "black"] = "mean"
    color_jitter: float = 0.0
    rand_augment: int = 0  # Number of operations; 0: none.
    rand_magnitude: int = 9

    @classmethod
    def of(cls, config: ImagesConfig, normalization: Normalization) -> "Augmentation":
        """The augmentation of a config."""
        names = ("flip", "crop_padding", "cutout", "padding_color")
        if isinstance(config, RetrainDataConfig):
            names += ("color_jitter", "rand_augment", "rand_magnitude")
        return cls(normalization=normalization, **{name: getattr(config, name) for name in names})

    def __call__(
        self, images: Tensor, generator: torch.Generator, total: int | None = None, offset: int = 0
    ) -> Tensor:
        """`images` (uint8, n x C x H x W) as float32, channels last.

        They are the images from `offset` on of a batch of `total` that several processes share.
        The CPU's generator advances by the same amount in all of them, and every image is treated
        as if one process held the whole batch.
        """
        number, _, height, width = images.shape
        total = number if total is None else total
        if not 0 <= offset <= total - number:
            raise ValueError(f"images {offset} to {offset + number} are not in a batch of {total}")
        draws = torch.rand(total, _DRAWS, generator=generator, dtype=torch.float64)
        draws = draws[offset : offset + number]
        for vary in self._random_operations():
            more = torch.rand(total, vary.num_draws, generator=generator, dtype=torch.float64)
            images = vary(images, more[offset : offset + number])
        rows, columns = torch.arange(height), torch.arange(width)
        if self.flip:
            columns = torch.where(draws[:, :1] < 0.5, width - 1 - columns, columns)
        shifts = (draws[:, 1:3] * (2 * self.crop_padding + 1)).long() - self.crop_padding
        from_rows = rows + shifts[:, :1]
        from_columns = columns + shifts[:, 1:]
        seen_rows = (from_rows >= 0) & (from_rows < height)
        seen_columns = (from_columns >= 0) & (from_columns < width)
        inside = seen_rows[:, :, None] & seen_columns[:, None, :]
        is_black = self.padding_color == "black"
        shown = torch.ones_like(inside) if is_black else inside
        if self.cutout:
            cut_rows = _near(draws[:, 3:4], height, self.cutout)
            cut_columns = _near(draws[:, 4:5], width, self.cutout)
            shown &= ~(cut_rows[:, :, None] & cut_columns[:, None, :])
        pixels = _moved(images, from_rows.clamp_(0, height - 1), from_columns.clamp_(0, width - 1))
        if is_black:
            pixels *= to_device(inside[:, None], images.device)
        return plain(pixels, self.normalization).mul_(to_device(shown[:, None], images.device))

    def _random_operations(self) -> Iterator[RandAugment | ColorJitter]:
        """The operations on bytes that come before all other augmentation, if there are any."""
        if self.rand_augment:
            fill = (0.0,) * len(self.normalization.mean)
            if self.padding_color == "mean":
                fill = tuple(255 * value for value in self.normalization.mean)
            yield RandAugment(self.rand_augment, self.rand_magnitude, fill)
        if self.color_jitter:
            yield ColorJitter(self.color_jitter)


def plain(images: Tensor, normalization: Normalization) -> Tensor:
    """Images without augmentation, normalised: float32, channels last."""
    mean, std = normalization.tensors(images.device)
    pixels = images.to(torch.float32, memory_format=torch.channels_last)
    return pixels.div_(255).sub_(mean).div_(std)


def _moved(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Images whose pixel (y, x) was at `rows[i, y]`, `columns[i, x]` in image i."""
    number, channels, height, width = images.shape
    rows, columns = to_device(rows, images.device), to_device(columns, images.device)
    indices = (rows[:, :, None] * width + columns[:, None, :]).view(number, 1, height * width)
    moved = images.flatten(2).gather(2, indices.expand(number, channels, height * width))
    return moved.view_as(images)


def _near(draw: Tensor, length: int, side: int) -> Tensor:
    """A mask of the `length` positions that an interval of `side` with a random centre covers."""
    start = (draw * length).long() - side // 2
    positions = torch.arange(length)
    return (positions >= start) & (positions < start + side)

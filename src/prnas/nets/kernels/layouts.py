"""Layouts of images. All are channels-last, so that pixels by channels is a matrix for free."""
# pyright: reportIncompatibleMethodOverride=false

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from prnas.nets.kernels.autograd import by_hand


def is_channels_last(images: Tensor) -> bool:
    return images.is_contiguous(memory_format=torch.channels_last)


def as_matrix(images: Tensor) -> Tensor:
    """(batch, channels, height, width) as (pixels of all images, channels): a view."""
    return images.permute(0, 2, 3, 1).reshape(-1, images.shape[1])


def matrix_view(images: Tensor) -> Tensor:
    """The same for writing into: other layouts than channels-last are an error, never a copy."""
    return images.permute(0, 2, 3, 1).view(-1, images.shape[1])


def as_images(matrix: Tensor, like: Tensor) -> Tensor:
    """The inverse, for as many pixels as `like` has, and any number of channels."""
    batch, _, height, width = like.shape
    return matrix.view(batch, height, width, -1).permute(0, 3, 1, 2)


def split_phases(images: Tensor, step: int) -> Tensor:
    """The step x step phases of images, as a batch: there a dilation of `step` is none."""
    batch, channels, height, width = images.shape
    rows, columns = height // step, width // step
    pixels = images.permute(0, 2, 3, 1).reshape(batch, rows, step, columns, step, channels)
    phases = pixels.permute(2, 4, 0, 1, 3, 5)
    return phases.reshape(step * step * batch, rows, columns, channels).permute(0, 3, 1, 2)


def merge_phases(phases: Tensor, step: int) -> Tensor:
    """The inverse of `split_phases`."""
    number, channels, rows, columns = phases.shape
    batch = number // (step * step)
    pixels = phases.permute(0, 2, 3, 1).reshape(step, step, batch, rows, columns, channels)
    images = pixels.permute(2, 3, 0, 4, 1, 5)
    return images.reshape(batch, rows * step, columns * step, channels).permute(0, 3, 1, 2)


def every_second(images: Tensor) -> Tensor:
    """images[:, :, ::2, ::2], as a pooling: its backward pass stays channels-last."""
    return F.avg_pool2d(images, 1, 2)


def diagonal_phases(images: Tensor) -> tuple[Tensor, Tensor]:
    """images[:, :, ::2, ::2], and the same one pixel further both ways, of the same size.

    Where there is no pixel further on, it is zero. Their gradient is made in one piece.
    """
    phases: Any = (_DiagonalPhases.apply if by_hand() else _diagonal_phases)(images)
    return phases


def _diagonal_phases(images: Tensor) -> tuple[Tensor, Tensor]:
    layout = torch.channels_last if is_channels_last(images) else torch.contiguous_format
    first = images[:, :, ::2, ::2].contiguous(memory_format=layout)
    further = images[:, :, 1::2, 1::2]
    rows, columns = (first.shape[index] - further.shape[index] for index in (2, 3))
    second = F.pad(further, (0, columns, 0, rows)) if rows or columns else further
    return first, second.contiguous(memory_format=layout)


class _DiagonalPhases(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, images: Tensor) -> tuple[Tensor, Tensor]:
        ctx.layout = torch.channels_last if is_channels_last(images) else torch.contiguous_format
        ctx.shape = images.shape
        return _diagonal_phases(images)

    @staticmethod
    def backward(ctx: Any, first: Tensor, second: Tensor) -> Tensor:
        height, width = ctx.shape[2:]
        gradient = torch.empty(
            ctx.shape, dtype=first.dtype, device=first.device, memory_format=ctx.layout
        ).zero_()
        gradient[:, :, ::2, ::2] = first
        gradient[:, :, 1::2, 1::2] = second[:, :, : height // 2, : width // 2]
        return gradient

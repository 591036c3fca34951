"""The operations of random augmentation, each on a batch of bytes, on its device.

All take and give uint8, n x C x H x W. Sums are of whole numbers, so that what becomes of an image
does not depend on the batch it is in.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from prnas.nets.devices import to_device

# Weights of red, green and blue in grey (ITU-R BT.601), as parts of 65,536.
_LUMA = (19_595, 38_470, 7_471)


def grey(images: Tensor) -> Tensor:
    """The brightness of each pixel, n x 1 x H x W, int32."""
    integers = images.int()
    if images.shape[1] == 3:
        red, green, blue = integers.unbind(1)
        weighed = red * _LUMA[0] + green * _LUMA[1] + blue * _LUMA[2]
        return ((weighed + 2**15) >> 16)[:, None]
    channels = images.shape[1]
    return ((2 * integers.sum(1, keepdim=True) + channels) // (2 * channels)).int()


def blend(base: Tensor, images: Tensor, factors: Tensor) -> Tensor:
    """`base` with factor 0, the images with 1; factors (one an image) above 1 go further."""
    factors = to_device(factors.float(), images.device)[:, None, None, None]
    return _bytes(base + factors * (images - base.float()))


def brightness(images: Tensor, factors: Tensor) -> Tensor:
    return blend(torch.zeros_like(images), images, factors)


def contrast(images: Tensor, factors: Tensor) -> Tensor:
    """Away from, or towards, the mean brightness of each image."""
    number = images.shape[2] * images.shape[3]
    total = grey(images).sum((1, 2, 3), keepdim=True, dtype=torch.int64)
    return blend((2 * total + number) // (2 * number), images, factors)


def saturation(images: Tensor, factors: Tensor) -> Tensor:
    """Away from, or towards, grey. Grey images stay as they are."""
    return images if images.shape[1] == 1 else blend(grey(images), images, factors)


def sharpness(images: Tensor, factors: Tensor) -> Tensor:
    """Away from, or towards, a smoothed image, whose border is that of the image."""
    smooth = images.int()
    if min(images.shape[2:]) >= 3:
        height, width = images.shape[2:]
        pixels = images.int()
        total = 4 * pixels[:, :, 1:-1, 1:-1]
        for down in range(3):
            for right in range(3):
                total = total + pixels[:, :, down : height - 2 + down, right : width - 2 + right]
        smooth[:, :, 1:-1, 1:-1] = (2 * total + 13) // 26
    return blend(smooth, images, factors)


def posterize(images: Tensor, bits: int) -> Tensor:
    """Only the first bits of each value."""
    return images & (256 - 2 ** (8 - bits))


def solarize(images: Tensor, threshold: int) -> Tensor:
    """Values from the threshold on inverted."""
    return torch.where(images >= threshold, 255 - images, images) if threshold < 256 else images


def autocontrast(images: Tensor) -> Tensor:
    """Each channel stretched from 0 to 255."""
    low = images.amin((2, 3), keepdim=True).float()
    high = images.amax((2, 3), keepdim=True).float()
    flat = high == low
    scale = torch.where(flat, 1.0, 255 / (high - low))
    return torch.where(flat, images, _bytes((images - low) * scale))


def equalize(images: Tensor) -> Tensor:
    """Each channel with its values spread evenly, as far as equal ones stay equal."""
    number, channels, height, width = images.shape
    values = images.reshape(number * channels, height * width).long()
    ones = torch.ones_like(values)
    counts = torch.zeros(len(values), 256, dtype=torch.int64, device=images.device)
    counts.scatter_add_(1, values, ones)
    highest = values.amax(1, keepdim=True)
    step = (height * width - counts.gather(1, highest)) // 255
    below = counts.cumsum(1) - counts
    table = ((below + step // 2) // step.clamp(min=1)).clamp(max=255)
    spread = table.gather(1, values).to(torch.uint8).view_as(images)
    return torch.where(step.view(number, channels, 1, 1) > 0, spread, images)


def rotate(images: Tensor, degrees: Tensor, fill: Tensor) -> Tensor:
    """Around the middle, anticlockwise; what comes in has the colour `fill` (C values)."""
    height, width = images.shape[2:]
    angles = degrees.deg2rad()
    zeros = torch.zeros_like(angles)
    rows = (
        torch.stack([angles.cos(), -angles.sin() * height / width, zeros], 1),
        torch.stack([angles.sin() * width / height, angles.cos(), zeros], 1),
    )
    return _affine(images, torch.stack(rows, 1), fill)


def shear(images: Tensor, amounts: Tensor, fill: Tensor, down: bool = False) -> Tensor:
    """Rows moved sideways by their distance from the middle times the amount; or columns `down`."""
    height, width = images.shape[2:]
    matrices = torch.eye(2, 3, dtype=amounts.dtype).repeat(len(images), 1, 1)
    ratio = width / height if down else height / width
    matrices[:, int(down), 1 - int(down)] = amounts * ratio
    return _affine(images, matrices, fill)


def translate(images: Tensor, shares: Tensor, fill: Tensor, down: bool = False) -> Tensor:
    """Moved sideways by a share of the width; or `down`, of the height."""
    matrices = torch.eye(2, 3, dtype=shares.dtype).repeat(len(images), 1, 1)
    matrices[:, int(down), 2] = -2 * shares
    return _affine(images, matrices, fill)


def _affine(images: Tensor, matrices: Tensor, fill: Tensor) -> Tensor:
    """Each pixel from where its matrix (n x 2 x 3, of places from -1 to 1) sends it."""
    matrices = to_device(matrices.float(), images.device)
    color = to_device(fill.float(), images.device)[:, None, None]
    grid = F.affine_grid(matrices, list(images.shape), align_corners=False)
    # Outside is zero, so it is made the fill's place.
    moved = F.grid_sample(images - color, grid, align_corners=False)
    return _bytes(moved + color)


def _bytes(values: Tensor) -> Tensor:
    return values.round().clamp(0, 255).to(torch.uint8)

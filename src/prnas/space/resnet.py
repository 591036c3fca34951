"""Plain residual networks, which were not searched: their names, limits and sizes."""

import re

from prnas.space.layer_size import NetworkSize, Pixels, bn_size, conv_size, halved
from prnas.space.schedule import MOST_CELLS

RESNET = "resnet"
_NAME = re.compile(r"resnet(\d{0,6})")
_NAMES = "resnet8, resnet14, resnet20, …"


def resnet_blocks(name: str) -> int | None:
    """The number of blocks of the network with this name: 3 of `resnet8`; `None`: no such name.

    A `ValueError` if there is no network of so many layers.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    layers = int(match[1] or 8)
    if layers < 8 or layers % 6 != 2 or layers // 2 - 1 > MOST_CELLS:
        raise ValueError(f"a plain ResNet has 6 n + 2 layers: {_NAMES}; got {name:.60}")
    return layers // 2 - 1


def resnet_name(blocks: int) -> str:
    return f"{RESNET}{2 * blocks + 2}"


def check_resnet(blocks: int) -> list[str]:
    """The problems of a network of so many blocks, as messages."""
    if blocks >= 3 and blocks % 3 == 0:
        return []
    return [f"cells, which are a ResNet's blocks, must be a multiple of 3, got {blocks}"]


def resnet_size(
    channels: int = 16,
    blocks: int = 3,
    classes: int = 10,
    *,
    input_channels: int = 3,
    image_size: int | Pixels = 32,
) -> NetworkSize:
    """The exact size of the network, and its cost for one image."""
    pixels = (image_size, image_size) if isinstance(image_size, int) else image_size
    total = conv_size(9 * input_channels * channels, pixels) + bn_size(channels)
    c_in = channels
    for index in range(blocks):
        stage = 3 * index // blocks
        c_out = 2**stage * channels
        if c_out != c_in:
            pixels = halved(pixels)
            total += conv_size(c_in * c_out, pixels) + bn_size(c_out)
        total += conv_size(9 * c_in * c_out, pixels) + bn_size(c_out)
        total += conv_size(9 * c_out * c_out, pixels) + bn_size(c_out)
        c_in = c_out
    return total + NetworkSize(c_in * classes + classes, c_in * classes)

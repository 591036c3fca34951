"""Sizes of layers: their parameters, and their multiply-accumulates for one image."""

from dataclasses import dataclass

Pixels = tuple[int, int]  # height and width


@dataclass(frozen=True, slots=True)
class NetworkSize:
    """Trainable parameters, and multiply-accumulates of convolutions and linear layers."""

    parameters: int = 0
    macs: int = 0

    def __add__(self, other: "NetworkSize") -> "NetworkSize":
        return NetworkSize(self.parameters + other.parameters, self.macs + other.macs)


def halved(pixels: Pixels) -> Pixels:
    """The size of images after stride 2."""
    return -(-pixels[0] // 2), -(-pixels[1] // 2)


def conv_size(weights: int, pixels: Pixels) -> NetworkSize:
    """A convolution without bias that makes `pixels`; a linear layer makes one, (1, 1)."""
    return NetworkSize(weights, weights * pixels[0] * pixels[1])


def bn_size(channels: int) -> NetworkSize:
    """An affine batch normalisation."""
    return NetworkSize(2 * channels)


def pointwise_bn_size(c_in: int, c_out: int, pixels: Pixels) -> NetworkSize:
    """A 1 x 1 convolution and BN; a factorized reduction has as many weights."""
    return conv_size(c_in * c_out, pixels) + bn_size(c_out)

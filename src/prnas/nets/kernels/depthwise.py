"""Depthwise convolutions and their gradients, by PyTorch's own kernels."""

import torch
from torch import Tensor
from torch.nn import functional as F

_backward = torch.ops.aten.convolution_backward.default
Strips = dict[tuple[int, int], Tensor]


def depthwise(x: Tensor, weight: Tensor, stride: int, dilation: int) -> Tensor:
    """The convolution that keeps the size but for the stride. `weight`: (channels, 1, k, k)."""
    padding = dilation * (weight.shape[2] - 1) // 2
    return F.conv2d(x, weight, None, stride, padding, dilation, groups=weight.shape[0])


def input_gradient(grad: Tensor, x: Tensor, weight: Tensor, stride: int, dilation: int) -> Tensor:
    return _gradients(grad, x, weight, stride, dilation, [True, False, False])[0]


def weight_gradient(
    grad: Tensor, x: Tensor, weight: Tensor, stride: int, dilation: int, strips: Strips
) -> Tensor:
    """The gradient of the weight. `strips` remembers copies of `x` for the next call with it.

    On the CPU, kernels wider than 3 are taken in strips of three columns: oneDNN's weight gradient
    is fast up to that width only. The strips may overlap; what they share comes out the same.
    """
    kernel = weight.shape[2]
    narrow_image = x.shape[3] <= kernel // 2
    if kernel <= 3 or dilation > 1 or narrow_image or not x.is_cpu:
        return _gradients(grad, x, weight, stride, dilation, [False, True, False])[1]
    reach, number = kernel // 2 - 1, -(-kernel // 3)
    result = torch.empty_like(weight)
    narrow = weight[..., :3].contiguous()
    for index in range(number):
        shift = (2 * reach * index) // (number - 1) - reach
        if (kernel, shift) not in strips:
            # Padded by hand: the kernel is slow where padding exceeds half its size.
            strips[kernel, shift] = F.pad(x, (1 - shift, 1 + shift, kernel // 2, kernel // 2))
        strip = _backward(
            grad,
            strips[kernel, shift],
            narrow,
            None,
            [stride, stride],
            [0, 0],
            [1, 1],
            False,
            [0, 0],
            weight.shape[0],
            [False, True, False],
        )[1]
        result[..., shift + reach : shift + reach + 3] = strip
    return result


def _gradients(
    grad: Tensor, x: Tensor, weight: Tensor, stride: int, dilation: int, wanted: list[bool]
) -> tuple[Tensor, Tensor, Tensor]:
    padding = dilation * (weight.shape[2] - 1) // 2
    return _backward(
        grad,
        x,
        weight,
        None,
        [stride, stride],
        [padding, padding],
        [dilation, dilation],
        False,
        [0, 0],
        weight.shape[0],
        wanted,
    )

"""Depthwise convolutions that train faster on a CPU, by PyTorch's own kernels in another order.

oneDNN has no fast gradient for dilated kernels, nor for weights of kernels wider than 3. So an
image is split into the four phases that a dilation of 2 never mixes, which are then convolved
undilated; and gradients of wide kernels are taken in strips. The results are the same but for
rounding.
"""
# pyright: reportIncompatibleMethodOverride=false

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prnas.nets.kernels.autograd import by_hand, differentiable
from prnas.nets.kernels.layouts import is_channels_last, merge_phases, split_phases

Strips = dict[tuple[int, int], Tensor]  # strips of an image by kernel and shift


def depthwise(x: Tensor, weight: Tensor, stride: int, dilation: int) -> Tensor:
    """The convolution that keeps the size but for the stride. `weight`: (channels, 1, k, k)."""
    padding = dilation * (weight.shape[2] - 1) // 2
    return F.conv2d(x, weight, None, stride, padding, dilation, groups=weight.shape[0])


def input_gradient(grad: Tensor, x: Tensor, weight: Tensor, stride: int, dilation: int) -> Tensor:
    padding = dilation * (weight.shape[2] - 1) // 2
    return _gradient(0, grad, x, weight, stride, padding, dilation)


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
        padding = dilation * (kernel - 1) // 2
        return _gradient(1, grad, x, weight, stride, padding, dilation)
    reach, number = kernel // 2 - 1, -(-kernel // 3)
    columns: list[Tensor] = []
    # Only the shape of a strip's weight matters.
    narrow = weight.flatten()[: weight[..., :3].numel()].view(*weight.shape[:3], 3)
    for index in range(number):
        shift = (2 * reach * index) // (number - 1) - reach
        if (kernel, shift) not in strips:
            # Padded by hand: the kernel is slow where padding exceeds half its size.
            strips[kernel, shift] = F.pad(x, (1 - shift, 1 + shift, kernel // 2, kernel // 2))
        strip = _gradient(1, grad, strips[kernel, shift], narrow, stride, 0, 1)
        further = (2 * reach * (index + 1)) // (number - 1) - reach
        columns.append(strip if index == number - 1 else strip[..., : further - shift])
    return torch.cat(columns, dim=3)


def _gradient(
    which: int, grad: Tensor, x: Tensor, weight: Tensor, stride: int, padding: int, dilation: int
) -> Tensor:
    """The gradient of the input (0) or of the weight (1)."""
    strides, paddings, dilations = [stride] * 2, [padding] * 2, [dilation] * 2
    groups, mask = weight.shape[0], [which == 0, which == 1, False]
    return torch.ops.aten.convolution_backward.default(
        grad, x, weight, None, strides, paddings, dilations, False, [0, 0], groups, mask
    )[which]


class DepthwiseConv(nn.Conv2d):
    """A depthwise convolution without bias that keeps the size but for its stride."""

    def __init__(self, channels: int, kernel: int, stride: int, dilation: int) -> None:
        padding = dilation * (kernel - 1) // 2
        super().__init__(
            channels, channels, kernel, stride, padding, dilation, groups=channels, bias=False
        )

    def forward(self, input: Tensor) -> Tensor:
        kernel, stride, dilation = self.kernel_size[0], self.stride[0], self.dilation[0]
        slow = kernel > 3 or dilation == 2
        if not (slow and self.training and input.is_cpu and is_channels_last(input)):
            return super().forward(input)
        if torch.is_autocast_enabled("cpu") or not by_hand():  # a gradient would miss its casts
            return super().forward(input)
        if dilation > 2 or (dilation == 2 and (input.shape[2] % 2 or input.shape[3] % 2)):
            return super().forward(input)
        out: Any = _Depthwise.apply(input, self.weight, stride, dilation)
        return out


class _Depthwise(torch.autograd.Function):
    """`depthwise` and its gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, stride: int, dilation: int) -> Tensor:
        ctx.stride, ctx.dilation = stride, dilation
        if dilation == 1:
            ctx.save_for_backward(x, x, weight)
            return depthwise(x, weight, stride, 1)
        if stride == 2:  # only the pixels of one phase are ever read
            phase = x[:, :, ::2, ::2].contiguous(memory_format=torch.channels_last)
            ctx.save_for_backward(x, phase, weight)
            return depthwise(phase, weight, 1, 1)
        phases = split_phases(x, 2)
        ctx.save_for_backward(x, phases, weight)
        return merge_phases(depthwise(phases, weight, 1, 1), 2)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        images, x, weight = ctx.saved_tensors
        need_x, need_weight = needed = ctx.needs_input_grad[:2]
        if torch.is_grad_enabled():  # second derivatives

            def convolve() -> Tensor:
                return depthwise(images, weight, ctx.stride, ctx.dilation)

            return *differentiable(convolve, (images, weight), needed, grad), None, None
        stride = ctx.stride if ctx.dilation == 1 else 1
        phased = ctx.dilation == 2 and ctx.stride == 1
        grad = grad.contiguous(memory_format=torch.channels_last)
        grad = split_phases(grad, 2) if phased else grad
        weight_grad = weight_gradient(grad, x, weight, stride, 1, {}) if need_weight else None
        x_grad = input_gradient(grad, x, weight, stride, 1) if need_x else None
        if x_grad is not None and phased:
            x_grad = merge_phases(x_grad, 2)
        elif x_grad is not None and ctx.dilation == 2:
            number, channels, height, width = x_grad.shape
            spread = x_grad.new_zeros(number, 2 * height, 2 * width, channels)
            spread[:, ::2, ::2] = x_grad.permute(0, 2, 3, 1)
            x_grad = spread.permute(0, 3, 1, 2)
        return x_grad, weight_grad, None, None

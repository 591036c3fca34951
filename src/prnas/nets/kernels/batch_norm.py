"""Batch normalisation of pixels by channels, by PyTorch's own kernels.

On the CPU those kernels are many times slower for some tens of channels than for some hundreds.
So there neighbouring pixels are taken for further channels, and what comes out is put together:
exactly what the definition says, but for rounding.
"""
# pyright: reportIncompatibleMethodOverride=false

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from prnas.nets.kernels.autograd import by_hand, differentiable
from prnas.nets.kernels.layouts import as_images, as_matrix, is_channels_last

_WIDE = 256  # channels; from about 150 on, the kernels are at their best
# Measurements show that it pays up to so many channels, in a batch of at least so many values.
_FEW = 64
_LARGE = 2**18

update_statistics = torch.ops.aten.batch_norm_update_stats.default
normalisation_backward = torch.ops.aten.native_batch_norm_backward.default


def fold_of(pixels: Tensor) -> int:
    """The best number of successive pixels to treat as one with more channels."""
    number, channels = pixels.shape
    fold = 1
    while pixels.is_cpu and 2 * fold * channels <= _WIDE and number % (2 * fold) == 0:
        fold *= 2
    return fold


def statistics(pixels: Tensor, fold: int) -> tuple[Tensor, Tensor]:
    """The mean and the biased variance of each channel."""
    channels = pixels.shape[1]
    means, variances = update_statistics(pixels.view(-1, fold * channels), None, None, 0.0)
    if fold == 1:
        return means, variances
    means, variances = means.view(fold, channels), variances.view(fold, channels)
    mean = means.mean(0)
    apart = means.sub_(mean)
    return mean, variances.addcmul_(apart, apart).mean(0)


def sums(
    grad: Tensor, pixels: Tensor, mean: Tensor, reciprocal: Tensor, fold: int
) -> tuple[Tensor, Tensor]:
    """Over the pixels, for each channel: `grad` times the normalised value, and `grad` alone.

    `reciprocal` is one over the standard deviation.
    """
    channels = pixels.shape[1]
    wide = (-1, fold * channels)
    grad, pixels, mask = grad.reshape(wide), pixels.view(wide), [False, True, True]
    mean, reciprocal = repeated(mean, fold), repeated(reciprocal, fold)
    _, along, alone = normalisation_backward(
        grad, pixels, None, mean, reciprocal, mean, reciprocal, True, 0.0, mask
    )
    if fold == 1:
        return along, alone
    return along.view(fold, channels).sum(0), alone.view(fold, channels).sum(0)


def repeated(values: Tensor, fold: int) -> Tensor:
    """`values.repeat(fold)`, in less time."""
    return values if fold == 1 else torch.cat((values,) * fold)


class BatchNorm(nn.BatchNorm2d):
    """PyTorch's module, with the faster way on the CPU: training, in channels-last."""

    def forward(self, input: Tensor) -> Tensor:
        momentum, mean, variance = self.momentum, self.running_mean, self.running_var
        if not self.training and mean is not None and variance is not None:
            # PyTorch's module does the same, with a look at the input that `torch.fx` cannot trace.
            return F.batch_norm(input, mean, variance, self.weight, self.bias, False, 0.0, self.eps)
        if momentum is None or mean is None or variance is None or not self._faster(input):
            return super().forward(input)
        fold = fold_of(as_matrix(input))
        normalised: Any = _Normalise.apply(input, self.weight, self.bias, self.eps, fold)
        out, batch_mean, batch_variance = normalised
        number = input.numel() // input.shape[1]
        mean.lerp_(batch_mean, momentum)
        variance.lerp_(batch_variance.mul_(number / (number - 1)), momentum)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        return out

    def _faster(self, input: Tensor) -> bool:
        return (
            self.training
            and input.is_cpu
            and self.num_features <= _FEW
            and input.numel() >= _LARGE
            and input.numel() > input.shape[1]  # PyTorch's message for a single pixel is right
            and is_channels_last(input)
            and input.shape[1] == self.num_features  # and so is that for other channels
            and self.running_mean is not None
            and input.dtype == self.running_mean.dtype  # not so in mixed precision
            and input.dtype in (torch.float32, torch.float64)  # others lose too much of the mean
            and by_hand()
        )


class FrozenStatistics:
    """Within it, batch normalisations that train update copies of their running statistics.

    It may be entered again: PyTorch's recomputation does so for each further gradient.
    """

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        layers = [layer for module in modules for layer in module.modules()]
        self.norms = [layer for layer in layers if isinstance(layer, nn.BatchNorm2d)]
        self._saved: list[list[dict[str, Tensor | None]]] = []

    def __enter__(self) -> None:
        self._saved.append([dict(bn._buffers) for bn in self.norms])
        for bn in self.norms:
            if bn.training:
                for name, buffer in bn._buffers.items():
                    bn._buffers[name] = None if buffer is None else buffer.clone()

    def __exit__(self, *_: object) -> None:
        for bn, buffers in zip(self.norms, self._saved.pop(), strict=True):
            bn._buffers.update(buffers)


def recomputed(
    function: Callable[..., Tensor], modules: Sequence[nn.Module], *arguments: Any
) -> Tensor:
    """The output of `function`, which uses these modules; the backward pass computes it once more.

    It saves its arguments only. Nothing random may happen in it.
    """
    output = checkpoint(
        function,
        *arguments,
        use_reentrant=False,
        preserve_rng_state=False,
        context_fn=lambda: (nullcontext(), FrozenStatistics(modules)),
    )
    return cast(Tensor, output)


class _Normalise(torch.autograd.Function):
    """BN by the batch's statistics, which it returns as well; weight and bias may be `None`."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, fold: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        pixels = as_matrix(x)
        mean, variance = statistics(pixels, fold)
        reciprocal = (variance + eps).rsqrt_()
        scale = reciprocal if weight is None else reciprocal * weight
        shift = -mean * scale if bias is None else torch.addcmul(bias, mean, scale, value=-1)
        wide = pixels.view(-1, fold * pixels.shape[1])
        out = torch.addcmul(repeated(shift, fold), wide, repeated(scale, fold))
        ctx.eps, ctx.fold = eps, fold
        ctx.mark_non_differentiable(mean, variance)
        ctx.save_for_backward(x, weight, bias, mean, reciprocal)
        return as_images(out, x), mean, variance

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias, mean, reciprocal = ctx.saved_tensors
        needed = ctx.needs_input_grad[:3]
        if torch.is_grad_enabled():  # second derivatives

            def normalise() -> Tensor:
                return F.batch_norm(x, None, None, weight, bias, training=True, eps=ctx.eps)

            return *differentiable(normalise, (x, weight, bias), needed, grad), None, None
        pixels, grad, fold = as_matrix(x), as_matrix(grad), ctx.fold
        along, alone = sums(grad, pixels, mean, reciprocal, fold)
        x_grad = None
        if needed[0]:
            wide = (-1, fold * pixels.shape[1])
            scale = reciprocal if weight is None else reciprocal * weight
            share = scale / -len(pixels)
            slope = along * share * reciprocal
            shift = torch.addcmul(alone * share, slope, mean, value=-1)
            wide_grad = torch.addcmul(
                repeated(shift, fold), pixels.view(wide), repeated(slope, fold)
            ).addcmul_(grad.reshape(wide), repeated(scale, fold))
            x_grad = as_images(wide_grad, x)
        return x_grad, along if needed[1] else None, alone if needed[2] else None, None, None

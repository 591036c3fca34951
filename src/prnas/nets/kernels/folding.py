"""Pointwise convolution, batch normalisation and mixing weight, in one of two exact ways.

Let D be what a pointwise product reads (pixels x channels) and W its weight. Both ways compute
`scale * BN(D W^T)` and hand on its gradients; which one is cheaper depends on the shape of W.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import BatchNorm2d

from prnas.nets.kernels.batch_norm import normalisation_backward, update_statistics
from prnas.nets.kernels.layouts import as_matrix


class ScaledProduct(ABC):
    """`scale * BN(D W^T)`, with BN's statistics from the batch or running.

    `bias`, one value a channel, is left for the caller to add once for many products.
    """

    keeps_output: ClassVar[bool]  # `output` is then a cheap pass over what is kept

    def __init__(
        self, pixels: Tensor, matrix: Tensor, scale: Tensor | None, bn: BatchNorm2d, training: bool
    ) -> None:
        self.matrix, self.scale, self.bn, self.training = matrix, scale, bn, training
        self.num_pixels = pixels.shape[0]
        self.remember(pixels)
        if training:
            self.mean, self.variance = self.batch_statistics(pixels)
        else:
            assert bn.running_mean is not None
            assert bn.running_var is not None
            self.mean, self.variance = bn.running_mean, bn.running_var
        self.reciprocal = (self.variance + bn.eps).rsqrt_()
        self.scaled = self.reciprocal if scale is None else self.reciprocal * scale
        self.bias = -self.mean * self.scaled

    @abstractmethod
    def batch_statistics(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """The mean and the biased variance of each channel of D W^T."""

    @abstractmethod
    def output(self, pixels: Tensor) -> Tensor:
        """The whole result, bias included, in memory of its own."""

    @abstractmethod
    def add_to(self, total: Tensor | None, pixels: Tensor) -> Tensor:
        """`total` (in place) plus the result, without its bias."""

    @abstractmethod
    def backward(
        self, grad: Tensor, grad_sum: Tensor | None, pixels: Tensor, need_matrix: bool
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """Gradients of D, W and the scale. `grad_sum`: `grad` summed over its pixels, if known."""

    def forget(self) -> None:  # noqa: B027
        """Let go of what is as large as the images."""

    def remember(self, pixels: Tensor) -> None:  # noqa: B027
        """Compute it again."""


def product(
    pixels: Tensor, matrix: Tensor, scale: Tensor | None, bn: BatchNorm2d, training: bool
) -> ScaledProduct:
    """`scale * BN(pixels matrix^T)`, the cheaper way; without a scale, it is 1."""
    if training and pixels.shape[0] < 2:
        raise ValueError(
            "batch statistics need more than one pixel in a batch; use more images, or larger ones"
        )
    # Folding costs products with a covariance, of D's channels squared, and saves a few passes over
    # the output's channels. Where that pays was measured on a CPU.
    c_out, c_in = matrix.shape
    way = FoldedBN if c_in**2 <= 16 * c_out else DirectBN
    return way(pixels, matrix, scale, bn, training)


class FoldedBN(ScaledProduct):
    """As a single matrix product: `D weight^T + bias`.

    The batch statistics of D W^T follow from those of D: its mean is W m, its variance the diagonal
    of W S W^T, for the mean m and covariance S of D's channels. So

        scale * BN(D W^T) = D (diag(s) W)^T - diag(s) W m,    s = scale / sqrt(variance + eps),

    and D W^T is never made nor kept.
    """

    keeps_output = False

    def __init__(
        self, pixels: Tensor, matrix: Tensor, scale: Tensor | None, bn: BatchNorm2d, training: bool
    ) -> None:
        super().__init__(pixels, matrix, scale, bn, training)
        self.weight = matrix * self.scaled[:, None]

    def batch_statistics(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        self.center = pixels.mean(0)
        covariance = torch.mm(pixels.t(), pixels).div_(self.num_pixels)
        covariance.addr_(self.center, self.center, alpha=-1)
        self.pulled = self.matrix @ covariance
        return self.matrix @ self.center, (self.pulled * self.matrix).sum(1).clamp_min_(0)

    def output(self, pixels: Tensor) -> Tensor:
        return torch.addmm(self.bias, pixels, self.weight.t())

    def add_to(self, total: Tensor | None, pixels: Tensor) -> Tensor:
        if total is None:
            return torch.mm(pixels, self.weight.t())
        return total.addmm_(pixels, self.weight.t())

    def backward(
        self, grad: Tensor, grad_sum: Tensor | None, pixels: Tensor, need_matrix: bool
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        product = torch.mm(grad.t(), pixels)
        if grad_sum is None:
            grad_sum = grad.sum(0)
        if not self.training:
            raw = (self.matrix * product).sum(1) - self.mean * grad_sum
            grad_matrix = product * self.scaled[:, None] if need_matrix else None
            return torch.mm(grad, self.weight), grad_matrix, (raw * self.reciprocal).sum()
        product.addr_(grad_sum, self.center, alpha=-1)
        # For each output channel, the sum over pixels of its gradient times its normalised value.
        along = (self.matrix * product).sum(1).mul_(self.reciprocal)
        pull = along * self.reciprocal
        grad_matrix = None
        if need_matrix:
            grad_matrix = torch.addcmul(product, pull[:, None], self.pulled, value=-1)
            grad_matrix.mul_(self.scaled[:, None])
        back = self.weight.t() @ (self.matrix * (pull / -self.num_pixels)[:, None])
        constant = torch.addmv(
            self.center @ back, self.weight.t(), grad_sum, alpha=1 / self.num_pixels
        ).neg_()
        grad_pixels = torch.addmm(constant, grad, self.weight).addmm_(pixels, back)
        return grad_pixels, grad_matrix, along.sum()


class DirectBN(ScaledProduct):
    """As textbooks do it: `raw` is D W^T, and is kept. PyTorch's own BN kernels do the rest."""

    keeps_output = True

    def batch_statistics(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        return update_statistics(_one_image(self.raw), None, None, 0.0)

    def output(self, pixels: Tensor) -> Tensor:
        return torch.addcmul(self.bias, self.raw, self.scaled)

    def add_to(self, total: Tensor | None, pixels: Tensor) -> Tensor:
        if total is None:
            return self.raw * self.scaled
        return total.addcmul_(self.raw, self.scaled)

    def forget(self) -> None:
        del self.raw

    def remember(self, pixels: Tensor) -> None:
        self.raw = torch.mm(pixels, self.matrix.t())

    def backward(
        self, grad: Tensor, grad_sum: Tensor | None, pixels: Tensor, need_matrix: bool
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        weight = torch.ones_like(self.mean)  # the kernel wants one for each channel
        if self.scale is not None:
            weight *= self.scale
        images, raw, mask = _one_image(grad), _one_image(self.raw), [True, True, False]
        mean, variance, reciprocal, eps = self.mean, self.variance, self.reciprocal, self.bn.eps
        by_images, along, _ = normalisation_backward(
            images, raw, weight, mean, variance, mean, reciprocal, self.training, eps, mask
        )
        by_raw = as_matrix(by_images)
        grad_matrix = torch.mm(by_raw.t(), pixels) if need_matrix else None
        return torch.mm(by_raw, self.matrix), grad_matrix, along.sum()


def _one_image(matrix: Tensor) -> Tensor:
    """Pixels by channels as a channels-last image one pixel wide, as BN's kernels want it."""
    return matrix.t()[None, :, :, None]


def update_running_statistics(products: list[ScaledProduct]) -> None:
    """What `nn.BatchNorm2d` does to its buffers, for many of them at once."""
    momentum = products[0].bn.momentum
    means = [product.bn.running_mean for product in products]
    variances = [product.bn.running_var for product in products]
    unbiased = [each.variance * (each.num_pixels / (each.num_pixels - 1)) for each in products]
    torch._foreach_lerp_(means, [product.mean for product in products], momentum)  # pyright: ignore
    torch._foreach_lerp_(variances, unbiased, momentum)  # pyright: ignore
    for product in products:
        product.bn.num_batches_tracked += 1  # pyright: ignore

"""Pointwise convolution, batch normalisation and mixing weight, in one of two exact ways.

Let D be what a pointwise product reads (pixels x channels) and W its weight. Both ways compute
`scale * BN(D W^T)` and hand on its gradients; which one is cheaper depends on the shape of W.
"""

from typing import Protocol

import torch
from torch import Tensor, nn

from prnas.nets.kernels.layouts import as_matrix


class ScaledProduct(Protocol):
    """`scale * BN(D W^T)`, with BN's statistics from the batch or running."""

    keeps_output: bool  # `output` is then a cheap pass over what is kept
    bn: nn.BatchNorm2d
    mean: Tensor
    variance: Tensor
    num_pixels: int
    bias: Tensor | None  # of each channel, left for the caller to add once for many products

    def output(self, pixels: Tensor) -> Tensor:
        """The whole result, bias included, in memory of its own."""
        ...

    def add_to(self, total: Tensor | None, pixels: Tensor) -> Tensor:
        """`total` (in place) plus the result, without its bias."""
        ...

    def backward(
        self, grad: Tensor, grad_sum: Tensor | None, pixels: Tensor, need_matrix: bool
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """Gradients of D, W and the scale. `grad_sum`: `grad` summed over its pixels, if known."""
        ...

    def forget(self) -> None:
        """Let go of what is as large as the images."""
        ...

    def remember(self, pixels: Tensor) -> None:
        """Compute it again."""
        ...


def product(
    pixels: Tensor, matrix: Tensor, scale: Tensor | None, bn: nn.BatchNorm2d, training: bool
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


class FoldedBN:
    """As a single matrix product: `D weight^T + bias`.

    The batch statistics of D W^T follow from those of D: its mean is W m, its variance the diagonal
    of W S W^T, for the mean m and covariance S of D's channels. So

        scale * BN(D W^T) = D (diag(s) W)^T - diag(s) W m,    s = scale / sqrt(variance + eps),

    and D W^T is never made nor kept.
    """

    keeps_output = False

    __slots__ = (
        "bias",
        "bn",
        "center",
        "matrix",
        "mean",
        "num_pixels",
        "pulled",
        "reciprocal",
        "scaled",
        "training",
        "variance",
        "weight",
    )

    def __init__(
        self,
        pixels: Tensor,
        matrix: Tensor,
        scale: Tensor | None,
        bn: nn.BatchNorm2d,
        training: bool,
    ) -> None:
        self.matrix, self.bn, self.training = matrix, bn, training
        self.num_pixels = pixels.shape[0]
        if training:
            self.center = pixels.mean(0)
            covariance = torch.mm(pixels.t(), pixels).div_(self.num_pixels)
            covariance.addr_(self.center, self.center, alpha=-1)
            self.pulled = matrix @ covariance
            self.variance = (self.pulled * matrix).sum(1).clamp_min_(0)
            self.mean = matrix @ self.center
        else:
            assert bn.running_mean is not None
            assert bn.running_var is not None
            self.mean, self.variance = bn.running_mean, bn.running_var
        self.reciprocal = (self.variance + bn.eps).rsqrt_()
        self.scaled = self.reciprocal if scale is None else self.reciprocal * scale
        self.weight = matrix * self.scaled[:, None]
        self.bias: Tensor | None = -self.mean * self.scaled

    def output(self, pixels: Tensor) -> Tensor:
        assert self.bias is not None
        return torch.addmm(self.bias, pixels, self.weight.t())

    def add_to(self, total: Tensor | None, pixels: Tensor) -> Tensor:
        if total is None:
            return torch.mm(pixels, self.weight.t())
        return total.addmm_(pixels, self.weight.t())

    def forget(self) -> None:
        pass

    def remember(self, pixels: Tensor) -> None:
        pass

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


class DirectBN:
    """As textbooks do it: `raw` is D W^T, and is kept. PyTorch's own BN kernels do the rest."""

    keeps_output = True

    __slots__ = (
        "bias",
        "bn",
        "matrix",
        "mean",
        "num_pixels",
        "raw",
        "reciprocal",
        "scale",
        "scaled",
        "training",
        "variance",
    )

    def __init__(
        self,
        pixels: Tensor,
        matrix: Tensor,
        scale: Tensor | None,
        bn: nn.BatchNorm2d,
        training: bool,
    ) -> None:
        self.matrix, self.bn, self.training = matrix, bn, training
        self.num_pixels = pixels.shape[0]
        self.raw: Tensor | None = torch.mm(pixels, matrix.t())
        if training:
            self.mean, self.variance = _statistics(_one_image(self.raw), None, None, 0.0)
        else:
            assert bn.running_mean is not None
            assert bn.running_var is not None
            self.mean, self.variance = bn.running_mean, bn.running_var
        self.reciprocal = (self.variance + bn.eps).rsqrt_()
        self.scale = scale
        self.scaled = self.reciprocal if scale is None else self.reciprocal * scale
        self.bias: Tensor | None = -self.mean * self.scaled

    def output(self, pixels: Tensor) -> Tensor:
        assert self.raw is not None
        assert self.bias is not None
        return torch.addcmul(self.bias, self.raw, self.scaled)

    def add_to(self, total: Tensor | None, pixels: Tensor) -> Tensor:
        assert self.raw is not None
        if total is None:
            return self.raw * self.scaled
        return total.addcmul_(self.raw, self.scaled)

    def forget(self) -> None:
        self.raw = None

    def remember(self, pixels: Tensor) -> None:
        self.raw = torch.mm(pixels, self.matrix.t())

    def backward(
        self, grad: Tensor, grad_sum: Tensor | None, pixels: Tensor, need_matrix: bool
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        assert self.raw is not None
        weight = torch.ones_like(self.mean)  # the kernel wants one for each channel
        if self.scale is not None:
            weight *= self.scale
        by_images, along, _ = _normalisation_backward(
            _one_image(grad),
            _one_image(self.raw),
            weight,
            self.mean,
            self.variance,
            self.mean,
            self.reciprocal,
            self.training,
            self.bn.eps,
            [True, True, False],
        )
        by_raw = as_matrix(by_images)
        grad_matrix = torch.mm(by_raw.t(), pixels) if need_matrix else None
        return torch.mm(by_raw, self.matrix), grad_matrix, along.sum()


_statistics = torch.ops.aten.batch_norm_update_stats.default
_normalisation_backward = torch.ops.aten.native_batch_norm_backward.default


def _one_image(matrix: Tensor) -> Tensor:
    """Pixels by channels as a channels-last image one pixel wide, as BN's kernels want it."""
    return matrix.t()[None, :, :, None]


def update_running_statistics(products: list[ScaledProduct]) -> None:
    """What `nn.BatchNorm2d` does to its buffers, for many of them at once."""
    means: list[Tensor] = []
    variances: list[Tensor] = []
    for one in products:
        assert one.bn.running_mean is not None
        assert one.bn.running_var is not None
        assert one.bn.num_batches_tracked is not None
        means.append(one.bn.running_mean)
        variances.append(one.bn.running_var)
        one.bn.num_batches_tracked += 1
    momentum = products[0].bn.momentum
    unbiased = [one.variance * (one.num_pixels / (one.num_pixels - 1)) for one in products]
    for buffers, values in ((means, [one.mean for one in products]), (variances, unbiased)):
        torch._foreach_lerp_(buffers, values, momentum)  # pyright: ignore

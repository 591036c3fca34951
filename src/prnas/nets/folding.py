"""Pointwise convolution, batch normalisation and mixing weight as a single matrix product.

Let D be a separable convolution's depthwise output (pixels x channels) and W its pointwise weight.
The batch statistics of D W^T follow from those of D: its mean is W m, its variance the diagonal of
W S W^T, for the mean m and covariance S of D's channels. So

    scale * BN(D W^T) = D (diag(s) W)^T - diag(s) W m,    s = scale / sqrt(variance + eps),

and the wide tensors D W^T and BN(D W^T) are never made nor kept. The backward pass is by hand.
"""

import torch
from torch import Tensor, nn


class Folded:
    """`scale * BN(D W^T) = D weight^T + bias`, with BN's statistics from the batch or running."""

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
            if self.num_pixels < 2:
                raise ValueError(
                    "batch statistics need more than one pixel in a batch; use more images, or "
                    "larger ones"
                )
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
        self.bias = -self.mean * self.scaled

    def backward(
        self, grad: Tensor, grad_sum: Tensor, pixels: Tensor, need_matrix: bool
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """Gradients of D, W and the scale. `grad_sum` is `grad` summed over its pixels."""
        product = torch.mm(grad.t(), pixels)
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


def update_running_statistics(folds: list[Folded]) -> None:
    """What `nn.BatchNorm2d` does to its buffers, for many of them at once."""
    means: list[Tensor] = []
    variances: list[Tensor] = []
    for fold in folds:
        assert fold.bn.running_mean is not None
        assert fold.bn.running_var is not None
        assert fold.bn.num_batches_tracked is not None
        means.append(fold.bn.running_mean)
        variances.append(fold.bn.running_var)
        fold.bn.num_batches_tracked += 1
    momentum = folds[0].bn.momentum
    unbiased = [fold.variance * (fold.num_pixels / (fold.num_pixels - 1)) for fold in folds]
    for buffers, values in ((means, [fold.mean for fold in folds]), (variances, unbiased)):
        torch._foreach_lerp_(buffers, values, momentum)  # pyright: ignore

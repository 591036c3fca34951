"""Pointwise convolution, batch normalisation and mixing weight, in one of two exact ways.

Let D be what a pointwise product reads (pixels x channels) and W its weight. Both ways compute
`scale * BN(D W^T)` and hand on its gradients; which one is cheaper depends on the shape of W.
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import BatchNorm2d

from prnas.nets.kernels.batch_norm import normalisation_backward, update_statistics


class ScaledProduct(ABC):
    """`scale * BN(D W^T)`, with BN's statistics from the batch or running.

    What is as large as the images is computed when it is made; the rest, one value a channel or
    small matrices, by `complete`, for many products at once. `bias` is left for the caller to add
    once for many products.
    """

    keeps_output: ClassVar[bool]  # whether `output` is a cheap pass over a saved tensor
    mean: Tensor
    variance: Tensor
    reciprocal: Tensor  # one over the standard deviation
    scales: Tensor | None  # the scale, for each channel
    scaled: Tensor  # their product
    bias: Tensor

    def __init__(
        self, pixels: Tensor, matrix: Tensor, scale: Tensor | None, bn: BatchNorm2d, training: bool
    ) -> None:
        self.matrix, self.scale, self.bn, self.training = matrix, scale, bn, training
        self.num_pixels = pixels.shape[0]
        self.prepare(pixels)
        if training:
            self.measure(pixels)
        else:
            assert bn.running_mean is not None
            assert bn.running_var is not None
            self.mean, self.variance = bn.running_mean, bn.running_var

    @abstractmethod
    def measure(self, pixels: Tensor) -> None:
        """The batch's statistics, as far as they need all pixels."""

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
        """Gradients of D and W, and values whose sum is that of the scale.

        `grad_sum`: `grad` summed over its pixels, if known.
        """

    def prepare(self, pixels: Tensor) -> None:  # noqa: B027
        """Compute other tensors as large as the images that the methods below need."""


def product(
    pixels: Tensor, matrix: Tensor, scale: Tensor | None, bn: BatchNorm2d, training: bool
) -> ScaledProduct:
    """`scale * BN(pixels matrix^T)`, the cheaper way; without a scale, it is 1.

    It is to be completed.
    """
    if training and pixels.shape[0] < 2:
        raise ValueError(
            "batch statistics need more than one pixel in a batch; use more images, or larger ones"
        )
    # Folding costs products with a covariance, of D's channels squared, and saves a few passes over
    # the output's channels. Where that pays was measured on a CPU.
    c_out, c_in = matrix.shape
    way = FoldedBN if c_in**2 <= 16 * c_out else DirectBN
    return way(pixels, matrix, scale, bn, training)


def complete(products: Sequence[ScaledProduct]) -> None:
    """Reciprocals, scales and biases of products that have all a scale, or none of them.

    With scales, all have the same number of output channels. All their BNs have the same `eps`.
    """
    groups: defaultdict[torch.Size, list[FoldedBN]] = defaultdict(list)
    for each in products:
        if isinstance(each, FoldedBN):
            groups[each.matrix.shape].append(each)
    stacks = [FoldedStack(group) for group in groups.values()]
    direct = [each for each in products if isinstance(each, DirectBN)]
    ordered = [*(each for group in groups.values() for each in group), *direct]
    sizes = [len(each.matrix) for each in ordered]
    if products[0].training:
        variances = [stack.variances.view(-1) for stack in stacks]
        variances += [each.variance for each in direct]
    else:
        variances = [each.variance for each in ordered]
    mean, variance = _joined([each.mean for each in ordered]), _joined(variances)
    reciprocal = (variance + ordered[0].bn.eps).rsqrt_()
    scales = [each.scale for each in ordered if each.scale is not None]
    if scales:
        repeated = _stacked(scales)[:, None].expand(-1, sizes[0]).contiguous()
        scaled, rows = reciprocal * repeated.view(-1), repeated.unbind()
    else:
        scaled, rows = reciprocal, [None] * len(ordered)
    bias = (mean * scaled).neg_()
    small = (mean, variance, reciprocal, scaled, bias)
    values = zip(*(tensor.split(sizes) for tensor in small), rows, strict=True)
    for each, own in zip(ordered, values, strict=True):
        each.mean, each.variance, each.reciprocal, each.scaled, each.bias, each.scales = own
    first = 0
    for stack, group in zip(stacks, groups.values(), strict=True):
        end = first + sum(len(each.matrix) for each in group)
        stack.fold(group, reciprocal[first:end], scaled[first:end])
        first = end


def _stacked(tensors: Sequence[Tensor]) -> Tensor:
    return tensors[0][None] if len(tensors) == 1 else torch.stack(list(tensors))


def _joined(tensors: Sequence[Tensor]) -> Tensor:
    return tensors[0] if len(tensors) == 1 else torch.cat(list(tensors))


class FoldedBN(ScaledProduct):
    """BN folded into a single matrix product: `D weight^T + bias`.

    The batch statistics of D W^T follow from those of D: its mean is W m, its variance the diagonal
    of W S W^T, for the mean m and covariance S of D's channels. So

        scale * BN(D W^T) = D (diag(s) W)^T - diag(s) W m,    s = scale / sqrt(variance + eps),

    and D W^T is neither computed nor saved.
    """

    keeps_output = False
    weight: Tensor
    stack: "FoldedStack"  # the stack that it belongs to
    index: int  # its index in the stack
    gradient: "FoldedGradient | None" = None  # Set where many gradients were computed at once.
    center: Tensor
    squares: Tensor  # D^T D

    def measure(self, pixels: Tensor) -> None:
        self.center = pixels.mean(0)
        self.squares = torch.mm(pixels.t(), pixels)
        self.mean = self.matrix @ self.center

    def output(self, pixels: Tensor) -> Tensor:
        return torch.addmm(self.bias, pixels, self.weight.t())

    def add_to(self, total: Tensor | None, pixels: Tensor) -> Tensor:
        if total is None:
            return torch.mm(pixels, self.weight.t())
        return total.addmm_(pixels, self.weight.t())

    def backward(
        self, grad: Tensor, grad_sum: Tensor | None, pixels: Tensor, need_matrix: bool
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        if self.gradient is None:
            self.stack.backward([self], [grad], [pixels], grad_sum, need_matrix)
            assert self.gradient is not None
        by_matrix, by_scale, back, constant = self.gradient
        if back is None or constant is None:
            return torch.mm(grad, self.weight), by_matrix, by_scale
        by_pixels = torch.addmm(constant, grad, self.weight).addmm_(pixels, back)
        return by_pixels, by_matrix, by_scale


class FoldedGradient(NamedTuple):
    """The small ones of a product's gradients; that of D is `grad weight + D back + constant`."""

    by_matrix: Tensor | None
    by_scale: Tensor
    back: Tensor | None = None
    constant: Tensor | None = None


class FoldedStack:
    """The small matrices of products of the same shape, stacked."""

    def __init__(self, products: Sequence[FoldedBN]) -> None:
        self.matrices = _stacked([each.matrix for each in products])
        for index, each in enumerate(products):
            each.stack, each.index = self, index
        if not products[0].training:
            return
        self.centers = _stacked([each.center for each in products])
        covariances = _stacked([each.squares for each in products]).div_(products[0].num_pixels)
        for each, covariance in zip(products, covariances.unbind(), strict=True):
            covariance.addr_(each.center, each.center, alpha=-1)
            del each.squares
        self.pulled = torch.bmm(self.matrices, covariances)
        self.variances = (self.pulled * self.matrices).sum(2).clamp_min_(0)

    def fold(self, products: Sequence[FoldedBN], reciprocal: Tensor, scaled: Tensor) -> None:
        shape = self.matrices.shape[:2]
        self.reciprocals, self.scaled = reciprocal.view(shape), scaled.view(shape)
        self.weights = self.matrices * self.scaled[:, :, None]
        for each, weight in zip(products, self.weights.unbind(), strict=True):
            each.weight = weight

    def backward(
        self,
        products: Sequence[FoldedBN],
        grads: Sequence[Tensor],
        pixels: Sequence[Tensor],
        grad_sum: Tensor | None,
        need_matrix: bool,
    ) -> None:
        """Gradients of successive products of the stack; `grad_sum`: that of `grads`, if known."""
        number = products[0].num_pixels
        rows = slice(products[0].index, products[-1].index + 1)
        matrices, reciprocals, scaled = (
            self.matrices[rows],
            self.reciprocals[rows],
            self.scaled[rows, :, None],
        )
        by_weight = [torch.mm(grad.t(), read) for grad, read in zip(grads, pixels, strict=True)]
        if grad_sum is None:
            (grad,) = grads
            grad_sum = grad.sum(0)
        if not products[0].training:
            product = _stacked(by_weight)
            means = _stacked([each.mean for each in products])
            raw = (matrices * product).sum(2).sub_(means * grad_sum).mul_(reciprocals)
            by_matrix = (product * scaled).unbind() if need_matrix else [None] * len(products)
            for each, by_each, by_scale in zip(products, by_matrix, raw.unbind(), strict=True):
                each.gradient = FoldedGradient(by_each, by_scale)
            return
        for each, matrix in zip(products, by_weight, strict=True):
            matrix.addr_(grad_sum, each.center, alpha=-1)
        product = _stacked(by_weight)
        # For each output channel, the sum over pixels of its gradient times its normalised value.
        along = (matrices * product).sum(2).mul_(reciprocals)
        pull = along * reciprocals
        by_matrix = [None] * len(products)
        if need_matrix:
            gradient = torch.addcmul(product, pull[:, :, None], self.pulled[rows], value=-1)
            by_matrix = gradient.mul_(scaled).unbind()
        weights = self.weights[rows].transpose(1, 2)
        back = torch.bmm(weights, matrices * pull.div_(-number)[:, :, None])
        constants = torch.bmm(self.centers[rows, None], back)[:, 0]
        share = 1 / number
        for constant, weight in zip(constants.unbind(), weights.unbind(), strict=True):
            constant.addmv_(weight, grad_sum, alpha=share)
        constants.neg_()
        gradients = zip(by_matrix, along.unbind(), back.unbind(), constants.unbind(), strict=True)
        for each, own in zip(products, gradients, strict=True):
            each.gradient = FoldedGradient(*own)


class DirectBN(ScaledProduct):
    """BN as textbooks do it: `raw` is D W^T, and is saved. PyTorch's own BN kernels do the rest."""

    keeps_output = True

    def measure(self, pixels: Tensor) -> None:
        self.mean, self.variance = update_statistics(self.raw, None, None, 0.0)

    def output(self, pixels: Tensor) -> Tensor:
        return torch.addcmul(self.bias, self.raw, self.scaled)

    def add_to(self, total: Tensor | None, pixels: Tensor) -> Tensor:
        if total is None:
            return self.raw * self.scaled
        return total.addcmul_(self.raw, self.scaled)

    def prepare(self, pixels: Tensor) -> None:
        self.raw = torch.mm(pixels, self.matrix.t())

    def backward(
        self, grad: Tensor, grad_sum: Tensor | None, pixels: Tensor, need_matrix: bool
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        mean, variance, reciprocal, eps = self.mean, self.variance, self.reciprocal, self.bn.eps
        mask = [True, True, False]
        by_raw, along, _ = normalisation_backward(
            grad, self.raw, self.scales, mean, variance, mean, reciprocal, self.training, eps, mask
        )
        grad_matrix = torch.mm(by_raw.t(), pixels) if need_matrix else None
        return torch.mm(by_raw, self.matrix), grad_matrix, along


def update_running_statistics(products: list[ScaledProduct]) -> None:
    """Update running statistics as `nn.BatchNorm2d` does, for many layers at once."""
    bns, number = [product.bn for product in products], products[0].num_pixels
    means = [product.mean for product in products]
    variances = torch._foreach_mul(  # pyright: ignore
        [product.variance for product in products], number / (number - 1)
    )
    momentum = bns[0].momentum
    torch._foreach_lerp_([bn.running_mean for bn in bns], means, momentum)  # pyright: ignore
    torch._foreach_lerp_([bn.running_var for bn in bns], variances, momentum)  # pyright: ignore
    torch._foreach_add_([bn.num_batches_tracked for bn in bns], 1)  # pyright: ignore

"""The links of a candidate's chain: what the mixture computes, forward and backward, by hand."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import BatchNorm2d, Conv2d

from prnas.nets.kernels.depthwise_conv import Strips, depthwise, input_gradient, weight_gradient
from prnas.nets.kernels.folding import ScaledProduct, product
from prnas.nets.kernels.layouts import merge_phases, split_phases


class Link(ABC):
    """Convolutions of a ReLU'd input, the last of them a pointwise product, and its BN."""

    phases = 1  # the layout of what it makes (see `split_phases`); 1 is the plain one

    def __init__(self, convs: Sequence[Conv2d], bn: BatchNorm2d) -> None:
        self.convs, self.bn = convs, bn

    def parameters(self) -> list[Tensor]:
        return [conv.weight for conv in self.convs]

    def before_product(self, x: Tensor) -> Tensor:
        """The pointwise product's input."""
        return x

    def product(self, pixels: Tensor, scale: Tensor | None, training: bool) -> ScaledProduct:
        return product(pixels, self.matrix(), scale, self.bn, training)

    @abstractmethod
    def matrix(self) -> Tensor:
        """The weight of the pointwise product."""

    @abstractmethod
    def backward(
        self, grad: Tensor, grad_matrix: Tensor | None, x: Tensor, need_x: bool, strips: Strips
    ) -> tuple[Tensor | None, list[Tensor] | None]:
        """Gradients of x and of the parameters, from those of the product's input and matrix."""


class SeparableLink(Link):
    """A depthwise and a pointwise convolution. In phases, its dilation is 1."""

    def __init__(
        self, convs: Sequence[Conv2d], bn: BatchNorm2d, stride: int, dilation: int, phases: int
    ) -> None:
        super().__init__(convs, bn)
        self.stride, self.dilation, self.phases = stride, dilation, phases
        self.spatial = convs[0].kernel_size[0] > 1

    def before_product(self, x: Tensor) -> Tensor:
        if not self.spatial:  # a 1 x 1 depthwise weight only scales the matrix's columns
            return x
        return depthwise(x, self.convs[0].weight, self.stride, self.dilation)

    def matrix(self) -> Tensor:
        kernel, pointwise = self.parameters()
        matrix = pointwise.flatten(1)
        return matrix if self.spatial else matrix * kernel.view(-1)

    def backward(
        self, grad: Tensor, grad_matrix: Tensor | None, x: Tensor, need_x: bool, strips: Strips
    ) -> tuple[Tensor | None, list[Tensor] | None]:
        kernel, pointwise = self.parameters()
        stride, dilation = self.stride, self.dilation
        grad_x: Tensor | None = grad
        if self.spatial:
            grad_x = input_gradient(grad, x, kernel, stride, dilation) if need_x else None
        if grad_matrix is None:
            return grad_x, None
        if self.spatial:
            by_kernel = weight_gradient(grad, x, kernel, stride, dilation, strips)
            return grad_x, [by_kernel, grad_matrix.view(pointwise.shape)]
        by_kernel = (grad_matrix * pointwise.flatten(1)).sum(0).view(kernel.shape)
        return grad_x, [by_kernel, (grad_matrix * kernel.view(-1)).view(pointwise.shape)]


class PointwiseLink(Link):
    """A pointwise convolution, or the two of a factorized reduction, each of a channel block."""

    def matrix(self) -> Tensor:
        blocks = [weight.flatten(1) for weight in self.parameters()]
        return blocks[0] if len(blocks) == 1 else torch.block_diag(*blocks)

    def backward(
        self, grad: Tensor, grad_matrix: Tensor | None, x: Tensor, need_x: bool, strips: Strips
    ) -> tuple[Tensor | None, list[Tensor] | None]:
        if grad_matrix is None:
            return grad, None
        gradients: list[Tensor] = []
        row = column = 0
        for weight in self.parameters():
            rows, columns = weight.shape[:2]
            block = grad_matrix[row : row + rows, column : column + columns]
            gradients.append(block.reshape(weight.shape))
            row, column = row + rows, column + columns
        return grad, gradients


def next_input(output: Tensor, phases: int, next_phases: int) -> Tensor:
    """The input of a chain's next link, in its layout: the ReLU (in place) of this one's output."""
    images = output.relu_()
    return images if phases == next_phases else split_phases(images, next_phases)


def next_input_gradient(grad: Tensor, next_x: Tensor, phases: int, next_phases: int) -> Tensor:
    """The gradient of this link's output, from that of the next link's input."""
    grad = torch.ops.aten.threshold_backward(grad, next_x, 0)
    return grad if phases == next_phases else merge_phases(grad, next_phases)

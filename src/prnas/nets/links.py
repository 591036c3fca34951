"""One link of a candidate's chain: what the mixture computes, forward and backward, by hand."""

from typing import Protocol

import torch
from torch import Tensor

from prnas.nets.depthwise import Strips, depthwise, input_gradient, weight_gradient
from prnas.nets.folding import Product, product
from prnas.nets.operations import FactorizedReduction, ReluConvBN, SeparableConv
from prnas.nets.pixels import as_images, as_matrix, merge_phases, split_phases


class Link(Protocol):
    """A convolution of a ReLU'd input, and its BN, whose last part is a pointwise product.

    `phases`: the layout of what it makes (see `split_phases`); 1 is the plain one.
    """

    phases: int

    def parameters(self) -> list[Tensor]: ...

    def before_product(self, x: Tensor) -> Tensor:
        """What the pointwise product reads."""
        ...

    def product(self, read: Tensor, scale: Tensor | None, training: bool) -> Product: ...

    def backward(
        self, grad: Tensor, grad_matrix: Tensor | None, x: Tensor, need_x: bool, strips: Strips
    ) -> tuple[Tensor | None, list[Tensor] | None]:
        """Gradients of x and of the parameters, from those of the product's input and matrix."""
        ...


class SeparableLink:
    """A separable convolution. In phases, its dilation is 1."""

    def __init__(self, module: SeparableConv, stride: int, dilation: int, phases: int) -> None:
        self.module, self.stride, self.dilation, self.phases = module, stride, dilation, phases
        self.spatial = module.depthwise.kernel_size[0] > 1

    def parameters(self) -> list[Tensor]:
        return [self.module.depthwise.weight, self.module.pointwise.weight]

    def before_product(self, x: Tensor) -> Tensor:
        if not self.spatial:  # a 1 x 1 depthwise weight only scales the matrix's columns
            return x
        return depthwise(x, self.module.depthwise.weight, self.stride, self.dilation)

    def product(self, read: Tensor, scale: Tensor | None, training: bool) -> Product:
        matrix = self.module.pointwise.weight.flatten(1)
        if not self.spatial:
            matrix = matrix * self.module.depthwise.weight.view(-1)
        return product(as_matrix(read), matrix, scale, self.module.bn, training)

    def backward(
        self, grad: Tensor, grad_matrix: Tensor | None, x: Tensor, need_x: bool, strips: Strips
    ) -> tuple[Tensor | None, list[Tensor] | None]:
        kernel, pointwise = self.module.depthwise.weight, self.module.pointwise.weight
        grad_x = grad
        if self.spatial:
            grad_x = None
            if need_x:
                grad_x = input_gradient(grad, x, kernel, self.stride, self.dilation)
        if grad_matrix is None:
            return grad_x, None
        if self.spatial:
            by_kernel = weight_gradient(grad, x, kernel, self.stride, self.dilation, strips)
            return grad_x, [by_kernel, grad_matrix.view(pointwise.shape)]
        by_kernel = (grad_matrix * pointwise.flatten(1)).sum(0).view(kernel.shape)
        return grad_x, [by_kernel, (grad_matrix * kernel.view(-1)).view(pointwise.shape)]


class PointwiseLink:
    """A pointwise convolution, in one block or, for a factorized reduction, in two.

    A factorized reduction reads both of its images, one channel block each.
    """

    phases = 1

    def __init__(self, module: ReluConvBN | FactorizedReduction) -> None:
        self.module = module

    def parameters(self) -> list[Tensor]:
        if isinstance(self.module, ReluConvBN):
            return [self.module.conv.weight]
        return [self.module.first.weight, self.module.second.weight]

    def before_product(self, x: Tensor) -> Tensor:
        return x

    def product(self, read: Tensor, scale: Tensor | None, training: bool) -> Product:
        blocks = [weight.flatten(1) for weight in self.parameters()]
        matrix = blocks[0] if len(blocks) == 1 else torch.block_diag(*blocks)
        return product(as_matrix(read), matrix, scale, self.module.bn, training)

    def backward(
        self, grad: Tensor, grad_matrix: Tensor | None, x: Tensor, need_x: bool, strips: Strips
    ) -> tuple[Tensor | None, list[Tensor] | None]:
        if grad_matrix is None:
            return grad, None
        found: list[Tensor] = []
        row = column = 0
        for weight in self.parameters():
            rows, columns = weight.shape[:2]
            block = grad_matrix[row : row + rows, column : column + columns]
            found.append(block.reshape(weight.shape))
            row, column = row + rows, column + columns
        return grad, found


def next_input(done: Product, read: Tensor, phases: int, next_phases: int) -> Tensor:
    """What the next link of a chain reads: the ReLU of this one's output, in its layout."""
    images = as_images(done.output(as_matrix(read)).relu_(), read)
    return images if phases == next_phases else split_phases(images, next_phases)


def next_input_gradient(grad: Tensor, next_x: Tensor, phases: int, next_phases: int) -> Tensor:
    """The gradient of this link's output, from that of the next link's input."""
    grad = torch.ops.aten.threshold_backward(grad, next_x, 0)
    return grad if phases == next_phases else merge_phases(grad, next_phases)

"""The links of a candidate's chain that the supernet has: separable and pointwise convolutions."""

import torch
from torch import Tensor

from prnas.nets.kernels.depthwise import Strips, depthwise, input_gradient, weight_gradient
from prnas.nets.kernels.folding import ScaledProduct, product
from prnas.nets.kernels.layouts import as_matrix
from prnas.nets.operations import FactorizedReduction, ReluConvBN, SeparableConv


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

    def product(self, read: Tensor, scale: Tensor | None, training: bool) -> ScaledProduct:
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

    def product(self, read: Tensor, scale: Tensor | None, training: bool) -> ScaledProduct:
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

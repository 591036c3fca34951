"""One link of a candidate's chain: what the mixture computes, forward and backward, by hand."""

from typing import Protocol

import torch
from torch import Tensor

from prnas.nets.kernels.depthwise import Strips
from prnas.nets.kernels.folding import ScaledProduct
from prnas.nets.kernels.layouts import as_images, as_matrix, merge_phases, split_phases


class Link(Protocol):
    """A convolution of a ReLU'd input, and its BN, whose last part is a pointwise product.

    `phases`: the layout of what it makes (see `split_phases`); 1 is the plain one.
    """

    phases: int

    def parameters(self) -> list[Tensor]: ...

    def before_product(self, x: Tensor) -> Tensor:
        """What the pointwise product reads."""
        ...

    def product(self, read: Tensor, scale: Tensor | None, training: bool) -> ScaledProduct: ...

    def backward(
        self, grad: Tensor, grad_matrix: Tensor | None, x: Tensor, need_x: bool, strips: Strips
    ) -> tuple[Tensor | None, list[Tensor] | None]:
        """Gradients of x and of the parameters, from those of the product's input and matrix."""
        ...


def next_input(done: ScaledProduct, read: Tensor, phases: int, next_phases: int) -> Tensor:
    """What the next link of a chain reads: the ReLU of this one's output, in its layout."""
    images = as_images(done.output(as_matrix(read)).relu_(), read)
    return images if phases == next_phases else split_phases(images, next_phases)


def next_input_gradient(grad: Tensor, next_x: Tensor, phases: int, next_phases: int) -> Tensor:
    """The gradient of this link's output, from that of the next link's input."""
    grad = torch.ops.aten.threshold_backward(grad, next_x, 0)
    return grad if phases == next_phases else merge_phases(grad, next_phases)

"""The curvature of the loss in the architecture weights: its Hessian's largest eigenvalue.

A supernet whose loss is sharply curved there loses much when it is made discrete (Zela, Elsken,
Saikia, Marrakchi, Brox, Hutter: Understanding and Robustifying Differentiable Architecture Search.
ICLR 2020). The fused supernet is differentiable once only, so products with the Hessian are finite
differences of gradients, and its eigenvalue is found from few of them (Lanczos).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prnas.nets.removal import undisturbed
from prnas.nets.supernet import Supernet

STEPS = 10  # Steps of Lanczos, each of two passes.
REACH = 0.01  # The reach of the finite difference, in architecture weights.


def curvature(
    supernet: Supernet,
    images: Tensor,
    labels: Tensor,
    generator: torch.Generator,
    reach: float = REACH,
) -> float:
    """The largest eigenvalue of the loss's Hessian by the architecture weights, on these images.

    Batch normalisation uses their statistics. Differences reach so far that they count the kinks
    of ReLUs too, as a step does that crosses them. Not a bit of the supernet's state changes.
    """
    weights = supernet.architecture_parameters()

    def gradient() -> Tensor:
        loss = F.cross_entropy(supernet(images), labels)
        gradients = torch.autograd.grad(loss, weights, allow_unused=True)
        pairs = zip(weights, gradients, strict=True)
        return _flat([torch.zeros_like(w) if g is None else g for w, g in pairs])

    def product(direction: Tensor) -> Tensor:
        with moved(weights, direction * reach):
            ahead = gradient()
        with moved(weights, direction * -reach):
            behind = gradient()
        return (ahead - behind) / (2 * reach)

    with undisturbed(supernet, training=True), supernet.training_only("architecture"):
        size = sum(weight.numel() for weight in weights)
        with torch.enable_grad():
            return largest_eigenvalue(product, size, generator)


def largest_eigenvalue(
    product: Callable[[Tensor], Tensor], size: int, generator: torch.Generator, steps: int = STEPS
) -> float:
    """The largest eigenvalue of a symmetric matrix, from products with it.

    After as many `steps` as the matrix has different eigenvalues it is exact, but for rounding;
    before that it is below, and close where the largest stands out.
    """
    vector = torch.randn(size, dtype=torch.float64, generator=generator)
    vector /= vector.norm()
    basis: list[Tensor] = []
    diagonal: list[float] = []
    beside: list[float] = []
    for _ in range(min(steps, size)):
        basis.append(vector)
        image = product(vector)
        diagonal.append(float(image @ vector))
        for _ in range(2):  # once leaves rounding errors that grow
            for old in basis:
                image = image - (image @ old) * old
        length = float(image.norm())
        if length <= 1e-12 * max(map(abs, diagonal), default=0.0) or length == 0:
            break
        beside.append(length)
        vector = image / length
    number = len(diagonal)
    matrix = torch.diag(torch.tensor(diagonal, dtype=torch.float64))
    for i, value in enumerate(beside[: number - 1]):
        matrix[i, i + 1] = matrix[i + 1, i] = value
    return float(torch.linalg.eigvalsh(matrix)[-1])


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([tensor.detach().flatten() for tensor in tensors]).cpu().double()


@contextmanager
def moved(weights: Sequence[nn.Parameter], along: Tensor) -> Iterator[None]:
    """Within it, weights are moved; afterwards they are as they were, exactly."""
    before = [weight.detach().clone() for weight in weights]
    shifts = along.split([weight.numel() for weight in weights])
    try:
        with torch.no_grad():
            for weight, shift in zip(weights, shifts, strict=True):
                weight.add_(shift.reshape(weight.shape).to(weight.device, weight.dtype))
        yield
    finally:
        with torch.no_grad():
            for weight, old in zip(weights, before, strict=True):
                weight.copy_(old)

"""Helpers that hand-written gradients have in common."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def by_hand() -> bool:
    """Whether hand-written gradients may run: not within a compiler, nor in `torch.func`."""
    if torch.compiler.is_compiling():
        return False
    return not torch._C._are_functorch_transforms_active()  # pyright: ignore


def differentiable(
    function: Callable[[], Tensor],
    inputs: Sequence[Tensor | None],
    needed: Sequence[bool],
    grad: Tensor,
) -> list[Tensor | None]:
    """Gradients of `function` that can be differentiated in turn, for those inputs that need them.

    For a backward pass with `create_graph`: what it saved for speed alone has no graph.
    """
    trained = [x for x, need in zip(inputs, needed, strict=True) if need and x is not None]
    gradients = iter(torch.autograd.grad(function(), trained, grad, create_graph=True))
    return [next(gradients) if need else None for need in needed]

"""Saliency: the worth of all candidates of a supernet to first order, by one backward pass."""

import torch
from torch import Tensor
from torch.nn import functional as F

from prnas.nets.removal import Trunk, undisturbed
from prnas.nets.supernet import Supernet
from prnas.space.genotype import Role


def saliencies(
    supernet: Supernet, images: Tensor, labels: Tensor, *, renormalise: bool = False
) -> dict[Role, list[Tensor]]:
    """The rise of the mean loss without each candidate, as its gradient predicts it.

    That is minus the mixing weight times the loss's gradient by it; with `renormalise`, also what
    the others on the edge bring by growing to the same sum. A tensor for each edge. Batch
    normalisation uses the statistics of these images. Not a bit of the supernet's state changes.
    """
    with undisturbed(supernet, training=True), supernet.training_only():
        mixing: dict[Role, list[Tensor]] = {
            role: [edge.detach().requires_grad_() for edge in edges]
            for role, edges in supernet.mixing().items()
        }
        leaves = [edge for edges in mixing.values() for edge in edges]
        with torch.enable_grad():
            loss = F.cross_entropy(Trunk(supernet, images, mixing).logits, labels)
        gradients = iter(torch.autograd.grad(loss, leaves, allow_unused=True))
        return {
            role: [_rises(edge.detach(), next(gradients), renormalise) for edge in edges]
            for role, edges in mixing.items()
        }


def _rises(weights: Tensor, gradient: Tensor | None, renormalise: bool) -> Tensor:
    if gradient is None:  # nothing but 'zero', or an edge that leads nowhere
        return torch.zeros_like(weights)
    own = weights * gradient
    if not renormalise or len(weights) == 1:
        return -own
    others = own.sum() - own
    rest = weights.sum() - weights
    # Growth of the others, as a share of themselves.
    grown = torch.where(rest > 0, weights / rest, 0)
    return others * grown - own

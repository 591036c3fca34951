"""Paths through a supernet: the network that has one candidate on every edge, and its scores."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from prnas.nets.removal import ImageScores, undisturbed
from prnas.nets.search_cell import ActiveCell
from prnas.nets.supernet import Active, Supernet
from prnas.space.paths import Path
from prnas.space.shape import Role

Omitted = tuple[Role, int]  # an edge that takes no part in a path


def active_of(path: Path, omitted: Omitted | None = None) -> Active:
    """The candidates that a path activates: one an edge, and none on the omitted edge."""
    active: dict[Role, ActiveCell] = {}
    for role, indices in path.items():
        active[role] = tuple(
            () if (role, edge) == omitted else (index,) for edge, index in enumerate(indices)
        )
    return active


def unweighted(supernet: Supernet) -> Mapping[Role, list[Tensor]]:
    """Mixing weights of 1: a path's candidate then counts as in the discrete network."""
    roles = supernet.pools.roles
    return {
        role: [torch.ones_like(edge) for edge in supernet.architecture_weights(role)]
        for role in roles
    }


def path_logits(
    supernet: Supernet, images: Tensor, path: Path, generator: torch.Generator | None = None
) -> Tensor:
    """Logits of a path. Everything outside of it gets no gradient, and its statistics stay."""
    return supernet(images, generator, active_of(path), unweighted(supernet))


@torch.no_grad()
def path_scores(
    supernet: Supernet,
    images: Tensor,
    labels: Tensor,
    paths: Sequence[tuple[Path, Omitted | None]],
) -> ImageScores:
    """The scores of paths (rows) on `images`, normalised by their statistics.

    Not a bit of the supernet's state changes.
    """
    loss: list[Tensor] = []
    correct: list[Tensor] = []
    with undisturbed(supernet, training=True):
        mixing = unweighted(supernet)
        for path, omitted in paths:
            logits = supernet(images, None, active_of(path, omitted), mixing)
            loss.append(F.cross_entropy(logits, labels, reduction="none"))
            correct.append(logits.argmax(1) == labels)
    return ImageScores(torch.stack(loss), torch.stack(correct))

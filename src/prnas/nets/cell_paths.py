"""Cells within a supernet: the path that is a genotype, and its scores."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prnas.nets.paths import unweighted
from prnas.nets.removal import ImageScores, undisturbed
from prnas.nets.search_cell import ActiveCell
from prnas.nets.supernet import Supernet
from prnas.space.genotype import Genotype
from prnas.space.pools import Pools
from prnas.space.shape import Role


def active_of_cells(pools: Pools, genotype: Genotype) -> dict[Role, ActiveCell]:
    """The candidates that a genotype activates: its operations, none on edges that it omits."""
    active: dict[Role, ActiveCell] = {}
    for role in pools.roles:
        cell = pools.cell(role)
        chosen = {(state, edge.input): edge.op for state, edge in genotype.cell(role).edges}
        active[role] = tuple(
            (edge.candidates.index(chosen[position]),) if position in chosen else ()
            for position, edge in zip(cell.positions, cell.edges, strict=True)
        )
    return active


def cell_logits(
    supernet: Supernet,
    images: Tensor,
    genotype: Genotype,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Logits of the network that a genotype is, with the supernet's weights.

    Everything outside of it gets no gradient, and its statistics stay.
    """
    active = active_of_cells(supernet.pools, genotype)
    return supernet(images, generator, active, unweighted(supernet))


@torch.no_grad()
def cell_scores(
    supernet: Supernet, images: Tensor, labels: Tensor, genotypes: Sequence[Genotype]
) -> ImageScores:
    """The scores of genotypes (rows) on `images`, normalised by the statistics of these images.

    Running statistics mix those of many paths, and mean little for one. Not a bit of the
    supernet's state changes.
    """
    loss: list[Tensor] = []
    correct: list[Tensor] = []
    with undisturbed(supernet, training=True):
        for genotype in genotypes:
            logits = cell_logits(supernet, images, genotype)
            loss.append(F.cross_entropy(logits, labels, reduction="none"))
            correct.append(logits.argmax(1) == labels)
    return ImageScores(torch.stack(loss), torch.stack(correct))


@contextmanager
def calibrated(
    supernet: Supernet, genotype: Genotype, calibration: Sequence[Tensor]
) -> Iterator[None]:
    """Within it, a genotype is normalised by the mean statistics of batches of images.

    They are those of its own path and no other. After it, not a bit of the state is another.
    """
    norms = [layer for layer in supernet.modules() if isinstance(layer, nn.BatchNorm2d)]
    momenta = [norm.momentum for norm in norms]
    with torch.no_grad(), undisturbed(supernet, training=True):
        try:
            for number, images in enumerate(calibration, 1):
                for norm in norms:
                    norm.momentum = 1 / number  # so that all batches count alike
                cell_logits(supernet, images, genotype)
        finally:
            for norm, momentum in zip(norms, momenta, strict=True):
                norm.momentum = momentum
        supernet.eval()
        yield

"""A whole search step, as the paper has it: an architecture step, then a weight step."""

from collections.abc import Callable
from random import Random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prnas.nets import plain_supernet
from prnas.nets.supernet import Active, Supernet
from prnas.space.genotype import ROLES
from prnas.space.pools import CellPools, Pools
from prnas.space.setting import INITIAL_POOL, SETTINGS

STAGES = {
    "initial": None,
    "DL": SETTINGS["darts-like"],
    "DR": SETTINGS["depth-restricted"],
    "UR": SETTINGS["unrestricted"],
}
Batch = tuple[Tensor, Tensor]
GRADIENT_NORM = 5.0


def stage_pools(stage: str, candidates: int = 6, num_nodes: int = 4) -> Pools:
    """The initial pools, or those after three replacements with random scores, by a fixed seed."""
    setting = STAGES[stage]
    if setting is None:
        return Pools.initial(num_nodes, INITIAL_POOL)
    generator = Random(0)
    cells: list[CellPools] = []
    for _ in ROLES:
        cell = CellPools.initial(num_nodes, setting.initial_pool)
        for _ in range(3):
            weights = [[generator.gauss(0, 1) for _ in edge.candidates] for edge in cell.edges]
            children = candidates // 2
            cell, _ = cell.evolve(
                weights, candidates - children, children, setting.limits, generator
            )
        cells.append(cell)
    return Pools(*cells)


def batches(batch: int, size: int = 32, classes: int = 10) -> tuple[Batch, Batch]:
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(2 * batch, 3, size, size, generator=generator)
    labels = torch.randint(classes, (2 * batch,), generator=generator)
    return (images[:batch], labels[:batch]), (images[batch:], labels[batch:])


def _optimizers(
    network: Supernet | plain_supernet.Supernet, fused: bool
) -> tuple[torch.optim.Optimizer, torch.optim.Optimizer]:
    adam = torch.optim.Adam(
        network.architecture_parameters(), 6e-4, (0.5, 0.999), weight_decay=1e-3, fused=fused
    )
    sgd = torch.optim.SGD(
        network.weight_parameters(), 0.025, momentum=0.9, weight_decay=3e-4, fused=fused
    )
    return adam, sgd


def textbook_step(
    network: plain_supernet.Supernet, data: tuple[Batch, Batch]
) -> Callable[[], None]:
    """As DARTS's code does it: every backward pass computes every gradient."""
    optimizers = _optimizers(network, fused=False)
    parts = (network.architecture_parameters(), network.weight_parameters())

    def step() -> None:
        for (images, labels), optimizer, parameters in zip(data, optimizers, parts, strict=True):
            network.zero_grad()
            F.cross_entropy(network(images), labels).backward()
            nn.utils.clip_grad_norm_(parameters, GRADIENT_NORM)
            optimizer.step()

    return step


def one_of_each(pools: Pools, generator: Random) -> Active:
    """One active candidate on every edge."""
    return {
        role: tuple((generator.randrange(len(edge.candidates)),) for edge in pools.cell(role).edges)
        for role in ROLES
    }


def our_step(
    network: Supernet, data: tuple[Batch, Batch], sample: Random | None = None
) -> Callable[[], None]:
    """A step of the whole supernet or, with `sample`, of a new sample of it each time."""
    # PyTorch's fused SGD fails where only some of the weights have a momentum yet.
    optimizers = _optimizers(network, fused=sample is None)

    def step() -> None:
        for (images, labels), optimizer, part in zip(
            data, optimizers, ("architecture", "weights"), strict=True
        ):
            active = None if sample is None else one_of_each(network.pools, sample)
            with network.training_only(part) as parameters:
                F.cross_entropy(network(images, active=active), labels).backward()
            nn.utils.clip_grad_norm_(parameters, GRADIENT_NORM, foreach=True)
            optimizer.step()
            optimizer.zero_grad()

    return step

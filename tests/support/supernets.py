"""Supernets with random pools, and comparing one with the textbook's."""

from random import Random

import torch
from torch.nn import functional as F

from benchmarks.textbook import TextbookSupernet, textbook_name
from prnas.nets.supernet import Supernet
from prnas.space.genotype import ROLES
from prnas.space.pools import CellPools, Pools
from prnas.space.setting import Setting
from tests.support.strategies import random_weights


def random_pools(setting: Setting, num_nodes: int, generator: Random, rounds: int = 3) -> Pools:
    """Pools of different sizes from edge to edge."""
    cells: list[CellPools] = []
    for _ in ROLES:
        cell = CellPools.initial(num_nodes, setting.initial_pool)
        for _ in range(rounds):
            weights = random_weights(cell, generator)
            cell, _ = cell.evolve(
                weights, generator.randint(2, 3), generator.randint(1, 3), setting.limits, generator
            )
        edges = [
            pool.prune(weights, generator.randint(1, 6), generator, last=True)[0]
            for pool, weights in zip(cell.edges, random_weights(cell, generator), strict=True)
        ]
        cells.append(CellPools(num_nodes, tuple(edges)))
    return Pools(*cells)


def randomized(supernet: Supernet, seed: int) -> Supernet:
    """Architecture weights that differ, and running statistics that are not the initial ones."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weights in supernet.architecture_parameters():
            weights.normal_(generator=generator)
        for name, buffer in supernet.named_buffers():
            if name.endswith("running_mean"):
                buffer.normal_(generator=generator)
            elif name.endswith("running_var"):
                buffer.uniform_(0.5, 2, generator=generator)
    return supernet


def relative(one: torch.Tensor, other: torch.Tensor) -> float:
    """The largest difference, relative to the largest value."""
    scale = max(one.abs().max().item(), other.abs().max().item(), 1e-300)
    return (one - other).abs().max().item() / scale


def check_equal(ours: Supernet, textbook: TextbookSupernet, images: torch.Tensor) -> None:
    labels = torch.arange(len(images)) % 5
    outputs: list[torch.Tensor] = []
    for network in (ours, textbook):
        network.zero_grad()
        logits = network(images)
        F.cross_entropy(logits, labels).backward()
        outputs.append(logits)
    assert relative(*outputs) < 1e-10
    mine = dict(ours.named_parameters())
    # Where a gradient all but cancels, what is left has the rounding of the larger ones.
    scale = max(p.grad.abs().max().item() for p in mine.values() if p.grad is not None)
    for name, theirs in textbook.named_parameters():
        weight = mine[textbook_name(name, ours)]
        assert theirs.grad is not None
        if weight.grad is None:  # nothing but 'zero' on all edges of a node
            assert theirs.grad.abs().max() == 0
            continue
        difference = (weight.grad - theirs.grad).abs().max().item()
        assert difference <= max(1e-10 * theirs.grad.abs().max().item(), 1e-12 * scale), name
    buffers = dict(ours.named_buffers())
    for name, theirs in textbook.named_buffers():
        assert relative(buffers[textbook_name(name, ours)].double(), theirs.double()) < 1e-10, name

"""Supernets with random pools, and comparing one with the plain one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

import torch
from torch.nn import functional as F

from prnas.config.architecture import ArchitectureConfig
from prnas.config.choices import Execution
from prnas.nets import plain_supernet
from prnas.nets.relaxations import Relaxation, Softmax
from prnas.nets.search_cell import ActiveCell
from prnas.nets.supernet import Supernet, build_supernet
from prnas.space.change import EdgeChange, Pruned
from prnas.space.edge_pool import EdgePool
from prnas.space.operations import Pool
from prnas.space.pools import CellPools, Pools
from prnas.space.setting import SETTINGS, Setting
from prnas.space.shape import DARTS, CellShape, Role
from tests.support.strategies import random_weights

LABELS = torch.arange(6) % 5


def random_pools(
    setting: Setting,
    num_nodes: int,
    generator: Random,
    rounds: int = 3,
    shape: CellShape = DARTS,
) -> Pools:
    """Pools of different sizes from edge to edge."""
    cells: dict[Role, CellPools] = {}
    for role in shape.roles:
        cell = CellPools.initial(num_nodes, setting.initial_pool, shape)
        for _ in range(rounds):
            weights = random_weights(cell, generator)
            cell, _ = cell.evolve(
                weights, generator.randint(2, 3), generator.randint(1, 3), setting.limits, generator
            )
        cells[role] = replace(cell, edges=tuple(_some(pool, generator) for pool in cell.edges))
    return Pools.of(cells)


def _some(pool: EdgePool, generator: Random) -> EdgePool:
    """The pool with at most six of its candidates."""
    number = min(generator.randint(1, 6), len(pool.candidates))
    stay = generator.sample(pool.candidates, number)
    gone = [Pruned(op, 0.0) for op in pool.candidates if op not in stay]
    return pool.apply(EdgeChange(tuple(gone)))


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


def relative(first: torch.Tensor, second: torch.Tensor) -> float:
    """The largest difference, relative to the largest value."""
    scale = max(first.abs().max().item(), second.abs().max().item(), 1e-300)
    return (first - second).abs().max().item() / scale


def plain_of(supernet: Supernet) -> plain_supernet.Supernet:
    """The plain supernet with the same weights and buffers."""
    stem, first = supernet.stem.conv, supernet.search_cells[0]
    settings = supernet.relaxation.settings
    twin = plain_supernet.Supernet(
        supernet.pools,
        first.plan.channels,
        len(supernet.cells),
        supernet.classifier.out_features,
        output=first.output,
        input_channels=stem.in_channels,
        partial=first.partial,
        auxiliary_skips=settings.auxiliary_skip is not None,
        edge_weights=settings.edge_weights,
    ).to(stem.weight.dtype)
    state = supernet.state_dict()
    twin.load_state_dict({name: state[our_name(name, supernet)] for name in twin.state_dict()})
    for cell in twin.cells:
        cell.auxiliary = first.auxiliary  # pyright: ignore
    return twin.train(supernet.training)


def our_name(name: str, supernet: Supernet) -> str:
    """What the supernet calls a tensor of the plain one: only the BN of pooling differs."""
    match name.split("."):
        case ["cells", index, "operations", edge, candidate, "bn", tensor]:
            pools = supernet.search_cells[int(index)].pools
            op = pools.edges[int(edge)].candidates[int(candidate)]
            if isinstance(op, Pool):
                source = pools.positions[int(edge)][1]
                return f"cells.{index}.pool_bns.{source}-{op.kind}-{op.kernel}.{tensor}"
        case _:
            pass
    return name


def plain_logits(
    twin: plain_supernet.Supernet, relaxation: Relaxation, images: torch.Tensor
) -> torch.Tensor:
    """What the plain supernet makes of images if candidates are mixed by another relaxation."""
    mixing = {
        role: relaxation.mix(role, list(twin.architecture[role].parameters()), None)
        for role in twin.shape.roles
    }
    before_last, last = twin.stem(images)
    for cell in twin.cells:
        edges = twin.edge_weights(cell.role)  # pyright: ignore
        before_last, last = last, cell(before_last, last, mixing[cell.role], edges)  # pyright: ignore
    return twin.classifier(last.mean(dim=(2, 3)))


def check_equal(ours: Supernet, twin: plain_supernet.Supernet, images: torch.Tensor) -> None:
    labels = torch.arange(len(images)) % 5
    outputs: list[torch.Tensor] = []
    for network in (ours, twin):
        network.zero_grad()
        logits = network(images)
        F.cross_entropy(logits, labels).backward()
        outputs.append(logits)
    assert relative(*outputs) < 1e-10
    mine = dict(ours.named_parameters())
    # Where a gradient all but cancels, what is left has the rounding of the larger ones.
    scale = max(p.grad.abs().max().item() for p in mine.values() if p.grad is not None)
    for name, theirs in twin.named_parameters():
        weight = mine[our_name(name, ours)]
        assert theirs.grad is not None
        if weight.grad is None:  # nothing but 'zero' on all edges of a node
            assert theirs.grad.abs().max() == 0
            continue
        difference = (weight.grad - theirs.grad).abs().max().item()
        assert difference <= max(1e-10 * theirs.grad.abs().max().item(), 1e-12 * scale), name
    buffers = dict(ours.named_buffers())
    for name, theirs in twin.named_buffers():
        assert relative(buffers[our_name(name, ours)].double(), theirs.double()) < 1e-10, name


def random_active(pools: Pools, generator: Random) -> dict[Role, ActiveCell]:
    """Some candidates of every edge; of a few edges, none."""
    return {
        role: tuple(
            tuple(sorted(generator.sample(range(number), generator.randint(0, min(2, number)))))
            for number in (len(edge.candidates) for edge in pools.cell(role).edges)
        )
        for role in pools.roles
    }


class OnlyActive(Softmax):
    """A softmax whose mixing weights are zero for all candidates but the active ones."""

    def __init__(self, active: Mapping[Role, ActiveCell]) -> None:
        super().__init__(ArchitectureConfig())
        self.chosen = active

    def mix(
        self, role: Role, weights: Sequence[torch.Tensor], generator: torch.Generator | None
    ) -> list[torch.Tensor]:
        mixing = super().mix(role, weights, generator)
        masks = [torch.zeros_like(edge) for edge in mixing]
        for mask, indices in zip(masks, self.chosen[role], strict=True):
            mask[list(indices)] = 1
        return [edge * mask for edge, mask in zip(mixing, masks, strict=True)]


def supernet_of(seed: int, execution: Execution = "fused") -> Supernet:
    pools = random_pools(SETTINGS["unrestricted"], 2, Random(seed))
    built = build_supernet(pools, 4, 4, 5, execution=execution).double()
    return randomized(built, seed)


def random_images(number: int = 3, size: int = 8) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(number, 3, size, size, dtype=torch.float64, generator=generator)

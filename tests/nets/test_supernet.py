"""The fast supernet is the textbook's: outputs, gradients, running statistics."""

from dataclasses import replace
from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from benchmarks.textbook import TextbookSupernet, textbook_name, textbook_of
from prnas.nets.supernet import Supernet, build_supernet
from prnas.space.cell_pools import CellPools, Pools
from prnas.space.genotype import ROLES
from prnas.space.operations import Conv, Conv1x7x1, Operation, Pool, Skip, Zero
from prnas.space.pool import EdgePool
from prnas.space.setting import INITIAL_POOL, SETTINGS, Setting
from prnas.space.size import Output
from tests.strategies import random_weights

EXTRA: tuple[Operation, ...] = (Zero(), Pool("max", 5), Conv1x7x1())


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


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=list(SETTINGS))
@pytest.mark.parametrize("recompute", [False, True], ids=["keep", "recompute"])
@settings(max_examples=6)
@given(st.data())
def test_equal_to_the_textbook(setting: Setting, recompute: bool, data: st.DataObject) -> None:
    seed = data.draw(st.integers(0, 10**6))
    generator = Random(seed)
    num_nodes = data.draw(st.integers(1, 4))
    if data.draw(st.booleans()):
        extra = data.draw(st.sampled_from(EXTRA))
        setting = replace(setting, initial_pool=(extra, *INITIAL_POOL))
    pools = random_pools(setting, num_nodes, generator, rounds=data.draw(st.integers(0, 3)))
    height, width = (data.draw(st.sampled_from([7, 8, 9, 12, 16])) for _ in range(2))
    batch = data.draw(st.sampled_from([1, 3]))
    training = data.draw(st.booleans())
    outputs: tuple[Output, ...] = ("concat", "mean")
    output = data.draw(st.sampled_from(outputs))
    built = build_supernet(pools, 4, 3, 5, recompute=recompute, output=output)
    supernet = randomized(built.double(), seed).train(training)
    images = torch.randn(
        batch, 3, height, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
    )
    check_equal(supernet, textbook_of(supernet, 4, 3, 5), images)


@pytest.mark.parametrize("dilation", [2, 3, 4])
@pytest.mark.parametrize("size", [8, 9, 12])
def test_equal_for_every_dilation_kernel_and_expansion(dilation: int, size: int) -> None:
    ops = tuple(
        Conv(kernel, dilation, expansions)
        for kernel in (1, 3, 5, 7, 9)
        for expansions in ((), (2,), (1, 2))
    )
    pools = Pools.initial(1, ops)
    supernet = randomized(build_supernet(pools, 2, 3, 5).double(), 0)
    images = torch.randn(2, 3, size, size + 4, dtype=torch.float64)
    check_equal(supernet, textbook_of(supernet, 2, 3, 5), images)


def test_equal_where_a_node_holds_nothing_but_zero() -> None:
    nothing, rest = EdgePool.initial((Zero(),)), EdgePool.initial((Skip(), Conv(3), Conv1x7x1()))
    cell = CellPools(3, (nothing, nothing, nothing, nothing, rest, rest, rest, nothing, rest))
    supernet = randomized(build_supernet(Pools(cell, cell), 4, 3, 5).double(), 1)
    images = torch.randn(3, 3, 8, 8, dtype=torch.float64)
    check_equal(supernet, textbook_of(supernet, 4, 3, 5), images)


@pytest.mark.parametrize("shape", [(4, 4), (9, 1), (5, 4), (3, 16)])
def test_equal_for_images_narrower_than_the_kernel(shape: tuple[int, int]) -> None:
    pools = Pools.initial(2, (Conv(9), Conv(11, 2), Conv(7, 1, (1,))))
    supernet = randomized(build_supernet(pools, 2, 3, 5).double(), 1)
    images = torch.randn(3, 3, *shape, dtype=torch.float64)
    check_equal(supernet, textbook_of(supernet, 2, 3, 5), images)


def test_single_precision_is_close_too() -> None:
    pools = random_pools(SETTINGS["unrestricted"], 4, Random(5))
    supernet = randomized(build_supernet(pools, 8, 4, 5), 5)
    twin = textbook_of(supernet, 8, 4, 5)
    images = torch.randn(8, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    assert relative(supernet(images), twin(images)) < 1e-4

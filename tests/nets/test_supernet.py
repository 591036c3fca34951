"""The fast supernet is the plain one: outputs, gradients, running statistics."""

from dataclasses import replace
from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from prnas.nets.supernet import build_supernet
from prnas.space.edge_pool import EdgePool
from prnas.space.network_size import Output
from prnas.space.operations import Conv, Conv1x7x1, Pool, Skip, Zero
from prnas.space.pools import CellPools, Pools
from prnas.space.setting import INITIAL_POOL, SETTINGS, Setting
from tests.support.strategies import EXAMPLES
from tests.support.supernets import check_equal, plain_of, random_pools, randomized, relative

# Operations that no setting of the paper begins with.
EXTRA = (Pool("max", 5), *(op for op in EXAMPLES if not isinstance(op, Conv | Pool | Skip)))


@pytest.mark.parametrize(
    ("setting", "recompute"),
    [(SETTINGS[name], name == "depth-restricted") for name in SETTINGS]
    + [(SETTINGS["unrestricted"], True)],
    ids=[*SETTINGS, "unrestricted, recompute"],
)
@settings(max_examples=6)
@given(st.data())
def test_equal_to_the_plain_one(setting: Setting, recompute: bool, data: st.DataObject) -> None:
    seed = data.draw(st.integers(0, 10**6))
    generator = Random(seed)
    num_nodes = data.draw(st.integers(1, 4))
    if data.draw(st.booleans()):
        allowed = [op for op in EXTRA if setting.limits.allows(op)]
        extra = data.draw(st.sampled_from(allowed))
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
    check_equal(supernet, plain_of(supernet), images)


@pytest.mark.parametrize("dilation", [2, 3, 4])
@pytest.mark.parametrize("size", [8, 9])  # with sides of 12 and 13: some multiples, some not
def test_equal_for_every_dilation_kernel_and_expansion(dilation: int, size: int) -> None:
    ops = tuple(
        Conv(kernel, dilation, expansions)
        for kernel in (1, 3, 5, 7, 9)
        for expansions in ((), (2,), (1, 2))
    )
    pools = Pools.initial(1, ops)
    supernet = randomized(build_supernet(pools, 2, 3, 5).double(), 0)
    images = torch.randn(2, 3, size, size + 4, dtype=torch.float64)
    check_equal(supernet, plain_of(supernet), images)


def test_equal_where_a_node_holds_nothing_but_zero() -> None:
    nothing, rest = EdgePool.initial((Zero(),)), EdgePool.initial((Skip(), Conv(3), Conv1x7x1()))
    cell = CellPools(3, (nothing, nothing, nothing, nothing, rest, rest, rest, nothing, rest))
    supernet = randomized(build_supernet(Pools(cell, cell), 4, 3, 5).double(), 1)
    images = torch.randn(3, 3, 8, 8, dtype=torch.float64)
    check_equal(supernet, plain_of(supernet), images)


@pytest.mark.parametrize("shape", [(4, 4), (9, 1), (5, 4), (3, 16)])
def test_equal_for_images_narrower_than_the_kernel(shape: tuple[int, int]) -> None:
    pools = Pools.initial(2, (Conv(9), Conv(11, 2), Conv(7, 1, (1,))))
    supernet = randomized(build_supernet(pools, 2, 3, 5).double(), 1)
    images = torch.randn(3, 3, *shape, dtype=torch.float64)
    check_equal(supernet, plain_of(supernet), images)


def test_single_precision_is_close_too() -> None:
    pools = random_pools(SETTINGS["unrestricted"], 4, Random(5))
    supernet = randomized(build_supernet(pools, 8, 4, 5), 5)
    twin = plain_of(supernet)
    images = torch.randn(8, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    assert relative(supernet(images), twin(images)) < 1e-4

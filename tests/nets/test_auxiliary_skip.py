"""Auxiliary skips (DARTS-): every edge adds its input, times a weight that falls to nothing."""

from random import Random

import pytest
import torch

from prnas.config.architecture import Anneal, ArchitectureConfig
from prnas.config.choices import Execution
from prnas.nets.relaxations import CycleProgress, Softmax
from prnas.nets.removal import CandidateIndex, scores_without
from prnas.nets.supernet import Supernet, build_supernet
from prnas.space.change import Change
from prnas.space.edge_pool import EdgePool
from prnas.space.operations import Conv, Pool, Skip, Zero
from prnas.space.pools import CellPools, Pools
from prnas.space.setting import SETTINGS
from tests.support.supernets import (
    check_equal,
    plain_of,
    random_images,
    random_pools,
    randomized,
    relative,
)

SETTING = ArchitectureConfig(auxiliary_skip=Anneal(start=1, end=0))


def built(pools: Pools, execution: Execution = "fused", recompute: bool = False) -> Supernet:
    supernet = build_supernet(
        pools, 4, 3, 5, relaxation=Softmax(SETTING), execution=execution, recompute=recompute
    )
    return randomized(supernet.double(), 3)


@pytest.mark.parametrize("execution", ["fused", "plain"])
@pytest.mark.parametrize("recompute", [False, True], ids=["keep", "recompute"])
def test_equal_to_the_textbook(execution: Execution, recompute: bool) -> None:
    pools = random_pools(SETTINGS["depth-restricted"], 2, Random(5))
    supernet = built(pools, execution, recompute)
    supernet.progress = CycleProgress(epoch=2, epochs=6)
    assert {cell.auxiliary for cell in supernet.search_cells} == {0.6}
    check_equal(supernet, plain_of(supernet), random_images(size=9))


@pytest.mark.parametrize("execution", ["fused", "plain"])
def test_a_node_of_nothing_but_zero_still_has_its_inputs(execution: Execution) -> None:
    cell = CellPools(1, (EdgePool.initial((Zero(),)),) * 2)
    supernet = built(Pools(cell, cell), execution)
    supernet.set_auxiliary(0.5)
    check_equal(supernet, plain_of(supernet), random_images())


@pytest.mark.parametrize("execution", ["fused", "plain"])
def test_a_node_differs_by_the_weight_times_the_sum_of_its_inputs(execution: Execution) -> None:
    pools = Pools.initial(1, (Conv(3), Pool("max", 3), Skip()))
    supernet = built(pools, execution)
    cell = supernet.search_cells[0]  # a normal one
    mixing = supernet.mixing()["normal"]
    inputs = [torch.randn(2, 12, 6, 6, dtype=torch.float64) for _ in range(2)]

    def node(weight: float) -> torch.Tensor:
        cell.auxiliary = weight
        return cell(*inputs, mixing, None)

    states = torch.stack(
        [state.all_channels for state in cell.inputs(inputs[0], inputs[1], None)]
    ).sum(0)
    assert relative(node(0.7) - node(0.0), 0.7 * states) < 1e-12


@pytest.mark.parametrize("execution", ["fused", "plain"])
def test_at_weight_0_it_is_darts_to_the_bit(execution: Execution) -> None:
    pools = random_pools(SETTINGS["darts-like"], 2, Random(2))
    supernet = built(pools, execution)
    darts = randomized(build_supernet(pools, 4, 3, 5, execution=execution).double(), 3)
    shared = supernet.state_dict()
    darts.load_state_dict({name: shared[name] for name in darts.state_dict()})
    x = random_images()
    supernet.progress = CycleProgress(epoch=5, epochs=6)
    assert torch.equal(supernet(x), darts(x))
    supernet.progress = CycleProgress(epoch=0, epochs=6)
    assert not torch.equal(supernet(x), darts(x))


def test_off_adds_no_module() -> None:
    names = build_supernet(Pools.initial(1, (Skip(), Conv(3))), 4, 3, 5).state_dict()
    assert not [name for name in names if "auxiliary" in name]


def test_what_candidates_are_worth_is_measured_without_it() -> None:
    supernet = built(Pools.initial(1, (Skip(), Conv(3))))
    labels, removed = torch.tensor([0, 1, 2]), [[CandidateIndex("normal", 0, 1)], []]
    supernet.set_auxiliary(1.0)
    measured = scores_without(supernet, random_images(), labels, removed)
    assert supernet.search_cells[0].auxiliary == 1.0
    supernet.set_auxiliary(0.0)
    assert torch.equal(
        measured.loss, scores_without(supernet, random_images(), labels, removed).loss
    )


def test_survives_an_evolution() -> None:
    pools = Pools.initial(1, (Skip(), Conv(3)))
    supernet = built(pools)
    before = [weight for name, weight in supernet.named_parameters() if "auxiliary" in name]
    assert len(before) == 2 * 2 * 2  # two reductions, two edges, two convolutions each
    cell, change = pools.normal.evolve(
        [[0.0, 1.0]] * 2, 1, 1, SETTINGS["darts-like"].limits, Random(0)
    )
    supernet.evolve(Change(change, change), torch.Generator().manual_seed(0), Pools(cell, cell))
    after = [weight for name, weight in supernet.named_parameters() if "auxiliary" in name]
    assert all(one is other for one, other in zip(before, after, strict=True))
    supernet.set_auxiliary(0.3)
    check_equal(supernet, plain_of(supernet), random_images())

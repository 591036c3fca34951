"""The supernet under change: nothing of the survivors is lost, children inherit everywhere."""

import copy
import pickle
from collections.abc import Sequence
from random import Random

import pytest
import torch
from torch.nn import functional as F

from prnas.config.architecture import ArchitectureConfig
from prnas.nets.relaxations import Relaxation
from prnas.nets.supernet import Supernet, build_supernet
from prnas.space.change import Added, CellChange, Change, EdgeChange
from prnas.space.edge_pool import EdgePool
from prnas.space.genotype import ROLES, Role
from prnas.space.morphisms import MORPHISMS, WIDEN, Morphism
from prnas.space.operations import Conv, Operation, Pool, Skip
from prnas.space.pools import CellPools, Pools
from prnas.space.setting import INITIAL_POOL, SETTINGS, Limits
from tests.support.strategies import random_weights
from tests.support.supernets import check_equal, plain_of, random_pools, randomized


def step(supernet: Supernet, images: torch.Tensor, optimizer: torch.optim.Optimizer) -> float:
    loss = F.cross_entropy(supernet(images), torch.arange(len(images)) % 5)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def trained(supernet: Supernet, steps: int = 3) -> Supernet:
    generator = torch.Generator().manual_seed(1)
    optimizer = torch.optim.SGD(supernet.parameters(), lr=0.05)
    for _ in range(steps):
        step(supernet, torch.randn(6, 3, 12, 12, generator=generator), optimizer)
    return supernet


def random_change(pools: Pools, limits: Limits, seed: int) -> Change:
    generator = Random(seed)
    changes = [
        pools.cell(role).evolve(
            random_weights(pools.cell(role), generator), 3, 3, limits, generator
        )[1]
        for role in ROLES
    ]
    return Change(*changes)


def tensors_by_candidate(supernet: Supernet) -> dict[tuple[int, int, Operation, str], torch.Tensor]:
    found: dict[tuple[int, int, Operation, str], torch.Tensor] = {}
    for number, cell in enumerate(supernet.search_cells):
        for edge, (pool, modules) in enumerate(zip(cell.pools.edges, cell.operations, strict=True)):
            for op, module in zip(pool.candidates, modules.children(), strict=True):
                for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
                    found[number, edge, op, name] = tensor
    return found


@pytest.mark.parametrize("name", SETTINGS)
def test_survivors_keep_their_very_tensors(name: str) -> None:
    limits = SETTINGS[name].limits
    supernet = build_supernet(Pools.initial(2, INITIAL_POOL), 4, 3, 5)
    generator = torch.Generator().manual_seed(0)
    for seed in range(2):
        trained(supernet, steps=1)
        before, pools = tensors_by_candidate(supernet), supernet.pools
        rest = {
            key: tensor
            for key, tensor in supernet.state_dict(keep_vars=True).items()
            if "operations" not in key and "architecture" not in key and "pool_bns" not in key
        }
        change = random_change(pools, limits, seed)
        supernet.evolve(change, generator)
        assert supernet.pools == pools.apply(change)
        after = tensors_by_candidate(supernet)
        for (cell, edge, op, tensor_name), tensor in after.items():
            role = supernet.search_cells[cell].plan.role
            children = {added.op for added in change.cell(role).edges[edge].added}
            if op not in children:
                assert tensor is before[cell, edge, op, tensor_name]
        state = supernet.state_dict(keep_vars=True)
        assert all(state[key] is tensor for key, tensor in rest.items())
        for role in ROLES:
            for edge, weights in zip(
                supernet.pools.cell(role).edges, supernet.architecture_weights(role), strict=True
            ):
                assert weights.tolist() == [0.0] * len(edge.candidates)
        supernet.double()
        check_equal(supernet, plain_of(supernet), torch.randn(2, 3, 8, 8).double())
        supernet.float()


def add_one(pools: Pools, parent: Operation, morphism: str) -> Change:
    """A change that adds the parent's child to every edge that holds the parent."""
    child = MORPHISMS[morphism].apply(parent)

    def edge_change(candidates: tuple[Operation, ...]) -> EdgeChange:
        if parent not in candidates:
            return EdgeChange()
        return EdgeChange(added=(Added(child, parent, morphism, 1.0, 1.0),))

    def cell_change(cell: CellPools) -> CellChange:
        return CellChange(tuple(edge_change(edge.candidates) for edge in cell.edges))

    return Change(cell_change(pools.normal), cell_change(pools.cell("reduction")))


@pytest.mark.parametrize(
    ("parent", "morphism"),
    [
        (Conv(3, 1, (1,)), "grow kernel"),
        (Conv(3, 1, (1,)), "widen"),
        (Conv(3, 2, (2, 1)), "grow kernel"),
        (Conv(3, 2, (2, 1)), "widen"),
    ],
)
def test_true_morphisms_keep_the_supernets_function(parent: Conv, morphism: str) -> None:
    ops = (Pool("max"), Skip(), parent)
    supernet = trained(build_supernet(Pools.initial(2, ops), 8, 3, 5))
    with torch.no_grad():
        for weights in supernet.architecture_parameters():
            weights.zero_()
    grown = copy.deepcopy(supernet)
    grown.evolve(add_one(grown.pools, parent, morphism), torch.Generator().manual_seed(0))
    # The child takes over half of its parent's weight: the mixture must not change at all.
    with torch.no_grad():
        for weights in grown.architecture_parameters():
            weights[:] = torch.tensor([0.5, 0.5, 0.25, 0.25]).log()
            weights[:2] = torch.tensor(0.5).log()
    images = torch.randn(5, 3, 16, 16, generator=torch.Generator().manual_seed(2))
    for training in (False, True):
        for network in (supernet, grown):
            network.train(training)
        torch.testing.assert_close(grown(images), supernet(images), rtol=1e-5, atol=1e-5)


def test_running_statistics_follow_to_children() -> None:
    supernet = trained(build_supernet(Pools.initial(2, (Skip(), Conv(3, 1, (1,)))), 4, 3, 5))
    supernet.evolve(
        add_one(supernet.pools, Conv(3, 1, (1,)), WIDEN.name), torch.Generator().manual_seed(0)
    )
    found = tensors_by_candidate(supernet)
    for (cell, edge, op, name), tensor in found.items():
        if op == Conv(3, 1, (2,)) and name.endswith("running_mean"):
            old = found[cell, edge, Conv(3, 1, (1,)), name]
            assert old.abs().sum() > 0
            assert torch.equal(tensor[: len(old)], old)
            assert (tensor[len(old) :] == 0).all()


def test_the_bn_of_a_pooling_goes_with_its_last_edge() -> None:
    supernet = trained(build_supernet(Pools.initial(2, INITIAL_POOL), 4, 3, 5))
    kept = supernet.search_cells[0].pool_bns["0-max-3"]
    weights = [[0.0, -9.0, 0.0, 0.0]] * 5  # average pooling leaves every edge
    limits = SETTINGS["darts-like"].limits
    change = CellPools.initial(2, INITIAL_POOL).evolve(weights, 3, 0, limits, Random(0))[1]
    supernet.evolve(Change(change, change), torch.Generator())
    names = list(supernet.search_cells[0].pool_bns)
    assert names == ["0-max-3", "1-max-3", "2-max-3"]
    assert supernet.search_cells[0].pool_bns["0-max-3"] is kept


def test_a_pooling_may_be_born(pooling_grows: Morphism[Pool]) -> None:
    supernet = trained(build_supernet(Pools.initial(2, INITIAL_POOL), 4, 3, 5)).double().eval()
    change = add_one(supernet.pools, Pool("max"), pooling_grows.name)
    supernet.evolve(change, torch.Generator().manual_seed(0))
    bn = supernet.search_cells[0].pool_bns["0-max-5"]
    assert not bn.training
    images = torch.randn(6, 3, 12, 12, dtype=torch.float64)
    check_equal(supernet, plain_of(supernet).eval(), images)


def test_the_same_seed_gives_the_same_supernet_whatever_ran_before() -> None:
    limits = SETTINGS["unrestricted"].limits

    def evolved() -> dict[str, torch.Tensor]:
        supernet = build_supernet(Pools.initial(2, INITIAL_POOL), 4, 3, 5)
        generator = torch.Generator().manual_seed(7)
        for seed in range(3):
            supernet.evolve(random_change(supernet.pools, limits, seed), generator)
        return supernet.state_dict()

    torch.manual_seed(1)
    one = evolved()
    before = torch.get_rng_state()
    torch.manual_seed(2)
    other = evolved()
    assert all(torch.equal(one[name], other[name]) for name in one)
    torch.manual_seed(1)
    assert torch.equal(before, torch.get_rng_state())


def test_one_part_is_trained_at_a_time() -> None:
    supernet = build_supernet(Pools.initial(2, INITIAL_POOL), 4, 3, 5)
    images = torch.randn(4, 3, 8, 8)
    with supernet.training_only("architecture") as wanted:
        supernet(images).square().sum().backward()
    assert wanted == supernet.architecture_parameters()
    assert all(weight.grad is not None for weight in wanted)
    assert all(weight.grad is None for weight in supernet.weight_parameters())
    found = [weight.grad.clone() for weight in wanted if weight.grad is not None]
    supernet.zero_grad()
    with supernet.training_only("weights") as wanted:
        supernet(images).square().sum().backward()
    assert all(weight.grad is not None for weight in wanted)
    assert all(weight.grad is None for weight in supernet.architecture_parameters())
    supernet.zero_grad()
    supernet(images).square().sum().backward()
    for weight, expected in zip(supernet.architecture_parameters(), found, strict=True):
        torch.testing.assert_close(weight.grad, expected)
    assert all(weight.requires_grad for weight in supernet.parameters())


def test_architecture_weights_are_in_the_state() -> None:
    supernet = randomized(build_supernet(Pools.initial(4, INITIAL_POOL), 4, 3, 5), 0)
    state = supernet.state_dict()
    names = [name for name in state if name.startswith("architecture.")]
    assert len(names) == 28
    other = build_supernet(Pools.initial(4, INITIAL_POOL), 4, 3, 5)
    other.load_state_dict(state)
    images = torch.randn(2, 3, 8, 8)
    assert torch.equal(other.eval()(images), supernet.eval()(images))
    assert torch.equal(copy.deepcopy(supernet)(images), supernet(images))
    assert torch.equal(pickle.loads(pickle.dumps(supernet))(images), supernet(images))  # noqa: S301


def test_another_relaxation_plugs_in() -> None:
    calls: list[int] = []

    class OnlyTheFirst(Relaxation):
        def mix(
            self, role: Role, weights: Sequence[torch.Tensor], generator: torch.Generator | None
        ) -> list[torch.Tensor]:
            calls.append(len(weights))
            return [torch.eye(len(edge))[0] * edge.exp() for edge in weights]

    pools = random_pools(SETTINGS["darts-like"], 2, Random(0))
    supernet = build_supernet(pools, 4, 3, 5, relaxation=OnlyTheFirst(ArchitectureConfig()))
    firsts = [
        CellPools(
            2, tuple(EdgePool.initial(edge.candidates[:1]) for edge in pools.cell(role).edges)
        )
        for role in ROLES
    ]
    single = build_supernet(Pools(*firsts), 4, 3, 5)
    state = supernet.state_dict()
    single.load_state_dict(
        {name: state[name] for name in single.state_dict()}
        | {name: value for name, value in single.state_dict().items() if "architecture" in name}
    )
    images = torch.randn(3, 3, 8, 8)
    torch.testing.assert_close(supernet(images), single(images), rtol=1e-4, atol=1e-5)
    assert calls == [5, 5]


def test_softmax_is_the_default() -> None:
    relaxation = build_supernet(Pools.initial(2, (Skip(), Conv(3))), 4, 3, 5).relaxation
    weights = [torch.tensor([0.0, 1.0]), torch.tensor([3.0])]
    assert [mixed.tolist() for mixed in relaxation.mix("normal", weights, None)] == [
        weights[0].softmax(0).tolist(),
        [1.0],
    ]


def test_skip_dropout_is_for_identities_in_training_and_draws_from_the_generator() -> None:
    supernet = build_supernet(Pools.initial(2, (Skip(), Conv(3))), 4, 3, 5)
    images = torch.randn(3, 3, 8, 8)
    plain = supernet.eval()(images)
    supernet.set_skip_dropout(0.5)
    assert torch.equal(supernet(images), plain)
    supernet.train()
    one = supernet(images, torch.Generator().manual_seed(1))
    assert torch.equal(one, supernet(images, torch.Generator().manual_seed(1)))
    assert not torch.equal(one, supernet(images, torch.Generator().manual_seed(2)))
    supernet.set_skip_dropout(0.0)
    assert not torch.equal(one, supernet(images))
    with pytest.raises(ValueError, match="below 1, got 1"):
        supernet.set_skip_dropout(1.0)


def test_the_mean_of_nodes_and_grey_images() -> None:
    supernet = build_supernet(
        Pools.initial(3, INITIAL_POOL), 4, 4, 7, input_channels=1, output="mean"
    )
    assert supernet(torch.randn(2, 1, 9, 9)).shape == (2, 7)
    assert supernet.classifier.in_features == 16


def test_one_pixel_has_no_batch_statistics() -> None:
    supernet = build_supernet(Pools.initial(1, (Conv(3),)), 4, 3, 5)
    with pytest.raises(ValueError, match="more than one pixel"):
        supernet(torch.randn(1, 3, 2, 2))
    assert supernet.eval()(torch.randn(1, 3, 2, 2)).shape == (1, 5)


def test_gradients_reach_the_parameters_that_are_there_now() -> None:
    supernet = build_supernet(Pools.initial(2, INITIAL_POOL), 4, 3, 5)
    images = torch.randn(2, 3, 8, 8)
    supernet(images)
    supernet.load_state_dict(copy.deepcopy(supernet.state_dict()), assign=True)
    for weight in supernet.parameters():
        weight.requires_grad_()
    supernet(images).square().sum().backward()
    assert all(weight.grad is not None for weight in supernet.parameters())


def test_what_a_user_froze_stays_frozen_and_the_rest_still_learns() -> None:
    supernet = build_supernet(Pools.initial(2, INITIAL_POOL), 4, 3, 5)
    frozen = [
        p for name, p in supernet.named_parameters() if "depthwise" in name or "first" in name
    ]
    for weight in frozen:
        weight.requires_grad_(False)
    with supernet.training_only("architecture"):
        pass
    supernet(torch.randn(2, 3, 8, 8)).square().sum().backward()
    assert frozen
    assert all(not weight.requires_grad and weight.grad is None for weight in frozen)
    held = {id(weight) for weight in frozen}
    assert all(p.grad is not None for p in supernet.parameters() if id(p) not in held)


def test_all_wrong_arguments_at_once() -> None:
    with pytest.raises(ValueError, match="channels must be") as error:
        build_supernet(Pools.initial(1, INITIAL_POOL), 0, 2, 0, output="product")  # pyright: ignore[reportArgumentType]
    for part in ("cells must be", "classes must be", "output must be one of concat, mean"):
        assert part in str(error.value)


def test_second_derivatives_are_refused() -> None:
    supernet = build_supernet(Pools.initial(1, (Conv(3),)), 4, 3, 5)
    weights = supernet.architecture_parameters()
    gradients = torch.autograd.grad(
        supernet(torch.randn(2, 3, 8, 8)).sum(), weights, create_graph=True
    )
    with pytest.raises(RuntimeError, match="once_differentiable"):
        sum(gradient.sum() for gradient in gradients).backward()  # pyright: ignore


def test_a_graph_is_differentiated_once() -> None:
    supernet = build_supernet(Pools.initial(1, (Conv(3),)), 4, 3, 5)
    loss = supernet(torch.randn(2, 3, 8, 8)).sum()
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="only once"):
        loss.backward()


def test_recomputation_gives_the_same_to_the_bit() -> None:
    pools = random_pools(SETTINGS["unrestricted"], 3, Random(1))
    images = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    found: list[list[torch.Tensor]] = []
    for recompute in (False, True):
        supernet = build_supernet(pools, 4, 4, 5, recompute=recompute)
        supernet(images).square().sum().backward()
        gradients = [p.grad for p in supernet.parameters() if p.grad is not None]
        found.append([*gradients, *supernet.buffers()])
    assert len(found[0]) > 100
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)

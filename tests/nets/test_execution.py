"""The two ways to compute a supernet, and steps with some of its candidates only."""

import copy
import gc
from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from prnas.config.choices import Execution
from prnas.nets import search_cell
from prnas.nets.kernels import batch_norm
from prnas.nets.supernet import Active, Supernet, build_supernet
from prnas.space.genotype import ROLES
from prnas.space.operations import Conv, Conv1x7x1, PlainConv, Pool, Skip, Zero
from prnas.space.pools import Pools
from prnas.space.setting import INITIAL_POOL, SETTINGS, Setting
from tests.support.supernets import (
    OnlyActive,
    check_equal,
    our_name,
    plain_logits,
    plain_of,
    random_active,
    random_pools,
    randomized,
    relative,
)

CONVS = (Conv(3), Conv(5, 2, (2,)), Conv1x7x1(), PlainConv(1), PlainConv(3))
OPS = (Skip(), Pool("max", 3), Pool("avg", 3), *CONVS, Zero())
WAYS: tuple[Execution, ...] = ("fused", "plain")


def images_of(number: int, size: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(
        number, 3, size, size, dtype=dtype, generator=torch.Generator().manual_seed(0)
    )


def loss_of(supernet: Supernet, images: torch.Tensor, **options: object) -> torch.Tensor:
    return F.cross_entropy(supernet(images, **options), torch.arange(len(images)) % 5)


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=list(SETTINGS))
@settings(max_examples=3)
@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_plain_execution_is_the_textbook(
    setting: Setting, seed: int, recompute: bool, training: bool
) -> None:
    generator = Random(seed)
    pools = random_pools(setting, generator.randint(1, 3), generator)
    built = build_supernet(pools, 4, 3, 5, recompute=recompute, execution="plain")
    supernet = randomized(built.double(), seed).train(training)
    check_equal(supernet, plain_of(supernet), images_of(3, generator.choice([7, 8, 12])))


@pytest.mark.parametrize("size", [8, 9])
def test_plain_recomputation_changes_no_bit(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_norm, "_LARGE", 2)  # so that the faster way is within
    results: list[list[torch.Tensor]] = []
    for recompute in (False, True):
        built = build_supernet(
            Pools.initial(2, OPS), 4, 3, 5, recompute=recompute, execution="plain"
        )
        supernet = randomized(built, 1)
        supernet.set_skip_dropout(0.3)
        images = images_of(4, size, torch.float32)
        loss_of(supernet, images, generator=torch.Generator().manual_seed(2)).backward()
        gradients = [weight.grad for weight in supernet.parameters() if weight.grad is not None]
        results.append([*gradients, *supernet.buffers()])
    assert all(torch.equal(*pair) for pair in zip(*results, strict=True))


def test_both_ways_drop_the_same_values_of_identities() -> None:
    outputs: list[torch.Tensor] = []
    for execution in WAYS:
        supernet = build_supernet(Pools.initial(3, OPS), 4, 3, 5, execution=execution).double()
        supernet.set_skip_dropout(0.5)
        outputs.append(supernet(images_of(4, 8), torch.Generator().manual_seed(3)))
    assert relative(*outputs) < 1e-10


def test_a_supernet_goes_on_in_the_other_way() -> None:
    supernet = randomized(build_supernet(Pools.initial(3, OPS), 4, 3, 5).double(), 0)
    before = list(supernet.state_dict())
    gradients: list[list[torch.Tensor]] = []
    for execution in WAYS:
        twin = copy.deepcopy(supernet)
        twin.execution = execution
        assert list(twin.state_dict()) == before
        loss_of(twin, images_of(3, 8)).backward()
        gradients.append([w.grad for w in twin.parameters() if w.grad is not None])
    assert len(gradients[0]) == len(gradients[1])
    scale = max(grad.abs().max().item() for grad in gradients[0])
    for one, other in zip(*gradients, strict=True):
        assert (one - other).abs().max().item() <= 1e-10 * scale


@pytest.mark.parametrize("recompute", [False, True], ids=["keep", "recompute"])
def test_plain_execution_can_be_differentiated_twice(recompute: bool) -> None:
    built = build_supernet(Pools.initial(1, OPS), 4, 3, 5, recompute=recompute, execution="plain")
    supernet = randomized(built.double(), 4)
    images = images_of(4, 8)
    weights = [w for w in supernet.weight_parameters() if w.ndim == 4]
    direction = [torch.randn_like(w) for w in weights]

    def slope() -> torch.Tensor:
        """The derivative of the loss along the direction, as a function of the architecture."""
        gradients = torch.autograd.grad(loss_of(supernet, images), weights, create_graph=True)
        pairs = zip(gradients, direction, strict=True)
        return torch.stack([(gradient * step).sum() for gradient, step in pairs]).sum()

    alphas = supernet.architecture_parameters()
    by_hand = torch.autograd.grad(slope(), alphas)
    for alpha, gradient in zip(alphas[:3], by_hand[:3], strict=True):
        values: list[float] = []
        for sign in (1, -1):
            with torch.no_grad():
                alpha[0] += sign * 1e-5
            values.append(slope().item())
            with torch.no_grad():
                alpha[0] -= sign * 1e-5
        assert gradient[0].item() == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-4)


def test_plain_execution_honours_autocast() -> None:
    supernet = build_supernet(Pools.initial(2, OPS), 8, 3, 5, execution="plain")
    seen: set[torch.dtype] = set()
    for module in supernet.cells.modules():
        if isinstance(module, torch.nn.Conv2d):
            module.register_forward_hook(lambda _module, _args, out: seen.add(out.dtype))
    with torch.autocast("cpu", torch.bfloat16):
        loss = loss_of(supernet, images_of(4, 8, torch.float32))
    loss.backward()
    assert seen == {torch.bfloat16}
    assert all(
        w.grad is None or (w.grad.dtype == torch.float32 and w.grad.isfinite().all())
        for w in supernet.parameters()
    )


# -------------------------------------------------------------------- active candidates


@pytest.mark.parametrize("execution", WAYS)
@settings(max_examples=3)
@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_active_candidates_are_a_softmax_that_is_zero_elsewhere(
    execution: Execution, seed: int, recompute: bool, training: bool
) -> None:
    generator = Random(seed)
    pools = random_pools(SETTINGS["unrestricted"], generator.randint(1, 4), generator)
    built = build_supernet(pools, 4, 3, 5, recompute=recompute, execution=execution)
    supernet = randomized(built.double(), seed).train(training)
    active = random_active(pools, generator)
    twin = copy.deepcopy(supernet)
    twin.relaxation = OnlyActive(active)
    images = images_of(3, 8)
    losses = [loss_of(supernet, images, active=active), loss_of(twin, images)]
    assert relative(*losses) < 1e-10
    for loss in losses:
        loss.backward()
    theirs = dict(twin.named_parameters())
    gradients = [weight.grad for weight in theirs.values() if weight.grad is not None]
    scale = max(gradient.abs().max().item() for gradient in gradients)
    inactive = inactive_modules(supernet, active)
    for name, weight in supernet.named_parameters():
        other = theirs[name].grad
        if name.startswith(inactive) or weight.grad is None:
            assert weight.grad is None, name
            assert other is None or other.abs().max() == 0, name
        else:
            assert other is not None
            assert (weight.grad - other).abs().max().item() <= 1e-10 * scale, name


@pytest.mark.parametrize("execution", WAYS)
@pytest.mark.parametrize("seed", range(2))
def test_active_candidates_agree_with_the_textbook(execution: Execution, seed: int) -> None:
    generator = Random(seed)
    pools = random_pools(SETTINGS["unrestricted"], 3, generator)
    supernet = randomized(build_supernet(pools, 4, 3, 5, execution=execution).double(), seed)
    active = random_active(pools, generator)
    twin, images = plain_of(supernet), images_of(3, 8)
    logits = supernet(images, active=active), plain_logits(twin, OnlyActive(active), images)
    assert relative(*logits) < 1e-10
    for each in logits:
        F.cross_entropy(each, torch.arange(3)).backward()
    ours = dict(supernet.named_parameters())
    gradients = [weight.grad for weight in ours.values() if weight.grad is not None]
    scale = max(gradient.abs().max().item() for gradient in gradients)
    for name, weight in twin.named_parameters():
        mine = ours[our_name(name, supernet)].grad
        assert weight.grad is not None
        if mine is None:
            assert weight.grad.abs().max() == 0, name
        else:
            assert (mine - weight.grad).abs().max().item() <= 1e-10 * scale, name


def inactive_modules(supernet: Supernet, active: Active) -> tuple[str, ...]:
    """The beginnings of the names of all tensors that belong to an inactive candidate."""
    return tuple(
        f"cells.{number}.operations.{edge}.{index}."
        for number, cell in enumerate(supernet.search_cells)
        for edge, pool in enumerate(cell.pools.edges)
        for index in range(len(pool.candidates))
        if index not in (active[cell.plan.role] or ())[edge]
    )


def idle_poolings(supernet: Supernet, active: Active) -> tuple[str, ...]:
    """The same for poolings that are active on no edge from their state: the edges share a BN."""
    names: list[str] = []
    for number, cell in enumerate(supernet.search_cells):
        edges = zip(
            cell.pools.positions, cell.pools.edges, active[cell.plan.role] or (), strict=True
        )
        busy = {
            search_cell.bn_name(source, op.kind, op.kernel)
            for (_, source), pool, indices in edges
            for op in (pool.candidates[index] for index in indices)
            if isinstance(op, Pool)
        }
        names += [f"cells.{number}.pool_bns.{name}." for name in set(cell.pool_bns) - busy]
    return tuple(names)


@pytest.mark.parametrize("execution", WAYS)
def test_a_step_leaves_every_bit_of_inactive_candidates(execution: Execution) -> None:
    pools = Pools.initial(4, INITIAL_POOL)
    supernet = randomized(build_supernet(pools, 4, 3, 5, execution=execution), 0)
    weights = supernet.weight_parameters()
    optimizer = torch.optim.SGD(weights, 0.1, momentum=0.9, weight_decay=0.1)
    images = images_of(8, 8, torch.float32)
    loss_of(supernet, images).backward()  # all of them have momentum now
    optimizer.step()
    optimizer.zero_grad()
    names = {id(weight): name for name, weight in supernet.named_parameters()}

    def momenta() -> dict[str, torch.Tensor]:
        return {
            f"{names[id(weight)]}.momentum": state["momentum_buffer"].clone()
            for weight, state in optimizer.state.items()
        }

    generator = Random(1)
    for _ in range(3):
        active = random_active(pools, generator)
        before = {**copy.deepcopy(supernet.state_dict()), **momenta()}
        loss_of(supernet, images, active=active).backward()
        optimizer.step()
        optimizer.zero_grad()
        after = {**supernet.state_dict(), **momenta()}
        inactive, idle = inactive_modules(supernet, active), idle_poolings(supernet, active)
        assert idle
        untouched = [name for name in before if name.startswith(inactive + idle)]
        assert all(torch.equal(before[name], after[name]) for name in untouched)
        assert len(untouched) > len(before) / 3
        moved = [name for name in before if name not in untouched and "operations" in name]
        assert any(not torch.equal(before[name], after[name]) for name in moved)


def test_plans_of_samples_are_bounded_and_forgotten_when_pools_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search_cell, "_MOST_PLANS", 20)
    pools = Pools.initial(3, INITIAL_POOL)
    supernet = randomized(build_supernet(pools, 4, 3, 5).double(), 0)
    images, generator = images_of(2, 8), Random(5)
    first = random_active(pools, generator)
    with torch.no_grad():
        expected = supernet(images, active=first)
        for _ in range(30):
            supernet(images, active=random_active(pools, generator))
            assert max(len(cell._plans) for cell in supernet.search_cells) <= 20
        supernet.eval()
        supernet.train()
        assert torch.equal(supernet(images, active=first), expected)


def test_a_sampled_step_computes_the_sampled_candidates_only() -> None:
    pools = Pools.initial(4, INITIAL_POOL)
    supernet = build_supernet(pools, 4, 3, 5)
    supernet(
        images_of(2, 8, torch.float32),
        active={role: tuple((0,) for _ in pools.cell(role).edges) for role in ROLES},
    )
    for cell in supernet.search_cells:
        assert sum(len(plan.candidates) for plan in cell._plans.values()) == len(cell.pools.edges)


@pytest.mark.parametrize("execution", WAYS)
def test_many_sampled_steps_leave_nothing_behind(
    execution: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_cell, "_MOST_PLANS", 30)
    pools = Pools.initial(1, INITIAL_POOL)
    supernet = build_supernet(pools, 2, 3, 5, execution=execution)
    optimizer = torch.optim.SGD(supernet.weight_parameters(), 0.01, momentum=0.9)
    images, generator = images_of(2, 8, torch.float32), Random(0)

    def tensors_after(steps: int) -> int:
        for _ in range(steps):
            loss_of(supernet, images, active=random_active(pools, generator)).backward()
            optimizer.step()
            optimizer.zero_grad()
        gc.collect()
        return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())

    first = tensors_after(40)  # by now, all weights have their momentum
    assert tensors_after(260) <= first

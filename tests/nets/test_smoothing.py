"""Random smoothing (SDARTS-RS): the mixtures that train the network's weights are perturbed."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from prnas.config.architecture import Anneal, ArchitectureConfig
from prnas.nets.relaxations import CycleProgress, Softmax
from prnas.nets.smoothing import smoothed
from prnas.nets.supernet import Supernet, build_supernet
from prnas.space.operations import Conv, Skip
from prnas.space.pools import Pools
from tests.support.generators import generator
from tests.support.supernets import randomized


@settings(max_examples=30)
@given(st.floats(0.01, 1), st.integers(0, 10_000), st.integers(1, 6))
def test_every_edge_stays_a_mixture_within_the_radius(radius: float, seed: int, size: int) -> None:
    before = torch.randn(size, dtype=torch.float64, generator=generator(seed)).softmax(0)
    (after,) = smoothed([before], radius, generator(seed))
    assert (after >= 0).all()
    assert after.sum().item() == pytest.approx(1)
    # Undone the normalisation, nothing moved further than the radius.
    draws = torch.rand(size, generator=generator(seed), dtype=torch.float64)
    moved = (before + (2 * draws - 1) * radius).clamp(0, 1)
    if moved.sum() > 0:
        assert torch.allclose(after, moved / moved.sum())
    else:
        assert after[before.argmax()] == 1


def test_where_all_fall_to_zero_the_largest_stays() -> None:
    before = [torch.tensor([0.2, 0.5, 0.3])] * 400
    rows = torch.stack(smoothed(before, 1.0, generator()))
    draws = torch.rand(1200, generator=generator(), dtype=torch.float64).reshape(400, 3)
    nothing = (before[0] + 2 * draws.float() - 1).clamp(0, 1).sum(1) == 0
    assert nothing.any()
    assert (rows[nothing] == torch.tensor([0.0, 1.0, 0.0])).all()


def built(anneal: Anneal | None) -> Supernet:
    asked = ArchitectureConfig(random_smoothing=anneal)
    pools = Pools.initial(1, (Conv(3), Skip()))
    supernet = build_supernet(pools, 4, 3, 5, relaxation=Softmax(asked))
    return randomized(supernet, 0)


def test_only_the_weights_step_is_perturbed() -> None:
    supernet, plain = built(Anneal(start=0.03, end=0.3)), built(None)
    before = [w.detach().clone() for w in supernet.architecture_parameters()]
    expected = plain.mixing()
    with supernet.training_only("weights"):
        perturbed = supernet.mixing(generator())
    with supernet.training_only("architecture"):
        for mixing in (supernet.mixing(generator()), supernet.eval().mixing()):
            for role, edges in mixing.items():
                assert all(map(torch.equal, edges, expected[role]))
    assert not torch.equal(perturbed["normal"][0], expected["normal"][0])
    assert all(map(torch.equal, before, supernet.architecture_parameters()))


def test_a_radius_of_zero_changes_nothing_and_draws_nothing() -> None:
    supernet, plain = built(Anneal(start=0, end=0.3)), built(None)
    supernet.progress = CycleProgress(epoch=0, epochs=4)
    source = generator()
    with supernet.training_only("weights"):
        mixing = supernet.mixing(source)
    for role, edges in plain.mixing().items():
        assert all(map(torch.equal, mixing[role], edges))
    assert torch.equal(source.get_state(), generator().get_state())


def test_the_radius_grows_within_a_cycle() -> None:
    supernet = built(Anneal(start=0.03, end=0.3))
    expected = supernet.mixing()["normal"]
    moved: list[float] = []
    for epoch in (0, 3):
        supernet.progress = CycleProgress(epoch, epochs=4)
        with supernet.training_only("weights"):
            edges = supernet.mixing(generator())["normal"]
        pairs = zip(edges, expected, strict=True)
        moved.append(max((one - other).abs().max().item() for one, other in pairs))
    assert moved[0] <= 0.031 < moved[1]

"""The relaxation of FairDARTS: sigmoids that do not compete, and the zero-one loss."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from prnas.config.architecture import ArchitectureConfig
from prnas.config.choices import Execution
from prnas.nets.relaxations import make_relaxation
from prnas.nets.supernet import build_supernet
from prnas.space.operations import Conv, Pool, Skip
from prnas.space.pools import Pools
from prnas.space.scores import sigmoid
from tests.support.supernets import plain_logits, plain_of, randomized, relative

SETTINGS = ArchitectureConfig(relaxation="sigmoid", zero_one=10.0)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6))
def test_scores_are_pytorchs_sigmoid(weights: list[float]) -> None:
    expected = torch.tensor(weights, dtype=torch.float64).sigmoid().tolist()
    assert sigmoid(weights) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=6), st.integers(0, 5))
def test_each_mixing_weight_is_its_own_sigmoid(weights: list[float], other: int) -> None:
    """Whatever the others on the edge are."""
    edge = torch.tensor(weights, dtype=torch.float64)
    changed = edge.clone()
    changed[other % len(edge)] += 1.0
    found, then = make_relaxation(SETTINGS).mix("normal", [edge, changed], None)
    assert found.tolist() == pytest.approx([1 / (1 + math.exp(-w)) for w in weights], rel=1e-12)
    kept = [i for i in range(len(edge)) if i != other % len(edge)]
    assert torch.equal(found[kept], then[kept])


def test_weights_begin_at_one_half() -> None:
    relaxation = make_relaxation(SETTINGS)
    edge = relaxation.initial(4, torch.zeros(()))
    assert relaxation.mix("normal", [edge], None)[0].tolist() == [0.5] * 4


def test_the_gradient_of_the_zero_one_loss_is_that_of_the_paper() -> None:
    edges = [torch.randn(size, dtype=torch.float64).requires_grad_() for size in (3, 5, 2)]
    loss = make_relaxation(SETTINGS).penalty({"normal": edges[:2], "reduction": edges[2:]})
    assert loss is not None
    loss.backward()
    for edge in edges:
        mixing = edge.detach().sigmoid()
        expected = -2 * 10 * (mixing - 0.5) * mixing * (1 - mixing) / 10
        assert edge.grad is not None
        assert torch.allclose(edge.grad, expected, rtol=1e-12)


def test_undecided_weights_stay_without_another_gradient() -> None:
    edge = torch.zeros(4, requires_grad=True)
    loss = make_relaxation(SETTINGS).penalty({"normal": [edge]})
    assert loss is not None
    loss.backward()
    assert edge.grad is not None
    assert (edge.grad == 0).all()


def test_without_a_weight_there_is_no_term() -> None:
    relaxation = make_relaxation(ArchitectureConfig(relaxation="sigmoid"))
    assert relaxation.penalty({"normal": [torch.zeros(3)]}) is None


@pytest.mark.parametrize("execution", ["fused", "plain"])
def test_equal_to_the_textbook(execution: Execution) -> None:
    pools = Pools.initial(2, (Conv(3), Pool("max", 3), Skip()))
    relaxation = make_relaxation(SETTINGS)
    built = build_supernet(pools, 4, 3, 5, relaxation=relaxation, execution=execution)
    supernet = randomized(built.double(), 0)
    images = torch.randn(2, 3, 8, 8, dtype=torch.float64)
    assert relative(supernet(images), plain_logits(plain_of(supernet), relaxation, images)) < 1e-10

"""The relaxation of GDAS: one sampled candidate an edge, with a straight-through gradient."""

import pytest
import torch

from prnas.config.architecture import Anneal, ArchitectureConfig
from prnas.config.choices import Execution
from prnas.nets.paths import path_logits
from prnas.nets.relaxations import CycleProgress, make_relaxation
from prnas.nets.relaxations.concrete import gumbel
from prnas.nets.relaxations.gdas import straight_through
from prnas.nets.supernet import Supernet, build_supernet
from prnas.space.operations import Conv, Pool, Skip
from prnas.space.pools import Pools
from prnas.space.shape import Role
from tests.support.generators import generator
from tests.support.supernets import randomized

COLD = Anneal(start=10, end=0.1)
SETTINGS = ArchitectureConfig(relaxation="gdas", temperature=COLD)


def built(execution: Execution) -> Supernet:
    pools = Pools.initial(2, (Conv(3), Pool("max", 3), Skip(), Conv(5)))
    relaxation = make_relaxation(SETTINGS)
    supernet = build_supernet(pools, 4, 3, 5, relaxation=relaxation, execution=execution)
    return randomized(supernet.double(), 0)


def images() -> torch.Tensor:
    return torch.randn(2, 3, 8, 8, dtype=torch.float64, generator=generator(5))


@pytest.mark.parametrize("execution", ["fused", "plain"])
def test_a_pass_is_that_of_the_drawn_path(execution: Execution) -> None:
    supernet = built(execution)
    path: dict[Role, tuple[int, ...]] = {
        role: tuple(int(edge.argmax()) for edge in edges)
        for role, edges in supernet.mixing(generator(3)).items()
    }
    assert torch.equal(supernet(images(), generator(3)), path_logits(supernet, images(), path))


@pytest.mark.parametrize("execution", ["fused", "plain"])
def test_only_the_drawn_candidates_get_gradients(execution: Execution) -> None:
    supernet = built(execution)
    drawn = {
        role: [int(edge.argmax()) for edge in edges]
        for role, edges in supernet.mixing(generator(3)).items()
    }
    supernet(images(), generator(3)).square().sum().backward()
    for cell in supernet.search_cells:
        for edge, chosen in enumerate(drawn[cell.plan.role]):
            for index, module in enumerate(cell.operations[edge].children()):
                for weight in module.parameters():
                    assert (weight.grad is not None) == (index == chosen)


@pytest.mark.parametrize("execution", ["fused", "plain"])
def test_the_architecture_gradient_is_the_softmaxs_at_the_drawn_one(execution: Execution) -> None:
    """dL/da = J / T * <gradient of the node, output of the drawn one> at its place."""
    supernet = built(execution)
    supernet.progress = CycleProgress(epoch=1, epochs=3)
    temperature = 5.05
    with supernet.training_only("architecture"):
        loss = supernet(images(), generator(3)).square().sum()
        leaves = [edge for edges in supernet.mixed.values() for edge in edges]
        weights = [w for role in supernet.pools.roles for w in supernet.architecture_weights(role)]
        found = torch.autograd.grad(loss, [*leaves, *weights], allow_unused=True)
        by_mixing, by_weights = found[: len(leaves)], found[len(leaves) :]
    draws = generator(3)
    noise = [
        g
        for role in supernet.pools.roles
        for g in gumbel([4] * len(supernet.architecture_weights(role)), draws, weights[0])
    ]
    rows = zip(leaves, by_mixing, weights, by_weights, noise, strict=True)
    for mixing, along, edge, ours, g in rows:
        assert along is not None
        assert ours is not None
        assert (along[mixing == 0] == 0).all()
        soft = ((edge.detach().log_softmax(0) + g) / temperature).softmax(0)
        jacobian = (torch.diag(soft) - torch.outer(soft, soft)) / temperature
        # The softmax of a log-softmax's shift: only differences count, so its own is a projection.
        inner = jacobian @ along
        expected = inner - edge.detach().softmax(0) * inner.sum()
        assert torch.allclose(ours, expected, rtol=1e-9, atol=1e-15)


def test_draws_have_the_frequencies_of_the_softmax() -> None:
    weights = torch.tensor([0.5, -0.3, 1.0, 0.0])
    number = 4_000
    relaxation = make_relaxation(SETTINGS).train()
    mixing = relaxation.mix("normal", [weights] * number, generator())
    counts = torch.stack(mixing).sum(0)
    expected = weights.softmax(0) * number
    chi_square = ((counts - expected).square() / expected).sum().item()
    assert chi_square < 16.3  # exceeded once in a thousand, with three degrees of freedom


def test_the_straight_through_weight_is_exactly_one() -> None:
    soft = torch.tensor([0.1, 0.7, 0.2], requires_grad=True)
    hard = straight_through(soft)
    assert hard.tolist() == [0.0, 1.0, 0.0]
    hard.backward(torch.tensor([1.0, 2.0, 3.0]))
    assert soft.grad is not None
    assert soft.grad.tolist() == [1.0, 2.0, 3.0]


def test_evaluated_each_edge_has_its_best() -> None:
    supernet = built("fused").eval()
    best: dict[Role, tuple[int, ...]] = {
        role: tuple(int(w.argmax()) for w in supernet.architecture_weights(role))
        for role in supernet.pools.roles
    }
    assert torch.equal(supernet(images()), path_logits(supernet, images(), best))

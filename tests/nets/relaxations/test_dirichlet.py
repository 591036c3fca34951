"""The relaxation of DrNAS: mixing weights drawn from a Dirichlet distribution."""

import pytest
import torch
from torch.distributions import Dirichlet, kl_divergence

from prnas.config.architecture import ArchitectureConfig
from prnas.nets.relaxations import make_relaxation
from prnas.nets.relaxations.dirichlet import concentration, divergence, drawn
from prnas.nets.supernet import build_supernet
from prnas.space.operations import Conv, Skip
from prnas.space.pools import Pools
from tests.support.generators import generator

RELAXATION = make_relaxation(ArchitectureConfig(relaxation="dirichlet"))


def test_means_and_variances_are_the_distributions() -> None:
    weights = torch.tensor([1.5, -0.5, 0.0, 0.4], dtype=torch.float64)
    conc = concentration(weights)
    samples = torch.stack(drawn([conc] * 5_000, generator()))
    assert torch.allclose(samples.sum(1), torch.ones(5_000, dtype=torch.float64))
    expected = Dirichlet(conc)
    error = (expected.variance / len(samples)).sqrt()
    assert ((samples.mean(0) - expected.mean).abs() < 4 * error).all()
    assert torch.allclose(samples.var(0), expected.variance, rtol=0.1)


def test_the_gradient_of_the_mean_is_the_closed_form() -> None:
    """E[m] = c / sum(c): the mean of pathwise gradients is its derivative."""
    conc = torch.tensor([2.0, 0.7, 1.3], dtype=torch.float64)
    number = 5_000
    rows = conc.repeat(number).reshape(number, 3).requires_grad_()
    samples = torch.stack(drawn(list(rows.unbind()), generator()))
    (gradients,) = torch.autograd.grad(samples[:, 0].sum(), rows)
    leaf = conc.clone().requires_grad_()
    (expected,) = torch.autograd.grad(leaf[0] / leaf.sum(), leaf)
    error = gradients.std(0) / number**0.5
    assert ((gradients.mean(0) - expected).abs() < 4 * error).all()


def test_one_gradient_is_pytorchs() -> None:
    conc = torch.tensor([2.0, 0.7, 1.3], dtype=torch.float64, requires_grad=True)
    along = torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64)
    (sample,) = drawn([conc], generator(3))
    (ours,) = torch.autograd.grad(sample @ along, conc)
    total = conc.detach().sum().expand(3).contiguous()
    slope = torch._dirichlet_grad(  # pyright: ignore[reportPrivateImportUsage]
        sample.detach(), conc.detach(), total
    )
    assert torch.allclose(ours, slope * (along - (sample.detach() * along).sum()))


def test_decided_weights_are_not_random_any_more() -> None:
    weights = [torch.tensor([3e5, 1e5], dtype=torch.float64)]
    (sample,) = RELAXATION.train().mix("normal", weights, generator())
    assert sample.tolist() == pytest.approx([0.75, 0.25], abs=0.01)


def test_evaluated_it_mixes_by_the_mean_and_draws_nothing() -> None:
    weights = [torch.tensor([0.0, 1.0, -1.0], dtype=torch.float64)]
    (mean,) = RELAXATION.eval().mix("normal", weights, None)
    conc = torch.tensor([1.0, 2.0, torch.e**-1], dtype=torch.float64)
    assert torch.allclose(mean, conc / conc.sum())


def test_draws_follow_the_generator() -> None:
    weights = [torch.zeros(3), torch.zeros(4)]
    one, other = (RELAXATION.train().mix("normal", weights, generator(7)) for _ in range(2))
    assert all(map(torch.equal, one, other))
    again = RELAXATION.mix("normal", weights, generator(8))
    assert not torch.equal(one[0], again[0])


def test_the_divergence_is_pytorchs() -> None:
    conc = torch.tensor([2.0, 0.7, 1.3], dtype=torch.float64)
    expected = kl_divergence(Dirichlet(conc), Dirichlet(torch.ones_like(conc)))
    assert divergence(conc).item() == pytest.approx(expected.item(), rel=1e-12)
    settings = ArchitectureConfig(relaxation="dirichlet", dirichlet_kl=0.5)
    weights = [conc - 1, conc - 1]  # above 0 the concentration is 1 more, below it another
    loss = make_relaxation(settings).penalty({"normal": weights})
    assert loss is not None
    twice = 2 * divergence(concentration(conc - 1)).item()
    assert loss.item() == pytest.approx(0.5 * twice, rel=1e-12)
    assert RELAXATION.penalty({"normal": weights}) is None


def test_a_pass_trains_the_architecture_weights() -> None:
    pools = Pools.initial(1, (Conv(3), Skip()))
    supernet = build_supernet(pools, 4, 3, 5, relaxation=RELAXATION)
    images = torch.randn(2, 3, 8, 8)
    supernet.train()(images, generator()).square().sum().backward()
    for edge in supernet.architecture_parameters():
        assert edge.grad is not None
        assert edge.grad.abs().max() > 0

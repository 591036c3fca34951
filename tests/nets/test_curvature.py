"""The largest eigenvalue of the loss's Hessian by the architecture weights."""

import pytest
import torch
from torch.nn import functional as F

from prnas.config.architecture import ArchitectureConfig
from prnas.config.choices import Execution
from prnas.nets.curvature import curvature, largest_eigenvalue
from prnas.nets.relaxations import make_relaxation
from prnas.nets.supernet import build_supernet
from prnas.space.operations import Conv, Pool, Skip
from prnas.space.pools import Pools
from tests.support.generators import generator
from tests.support.supernets import plain_of, randomized


def matrix_of(spectrum: list[float]) -> torch.Tensor:
    size = len(spectrum)
    q, _ = torch.linalg.qr(torch.randn(size, size, dtype=torch.float64, generator=generator(1)))
    return q @ torch.diag(torch.tensor(spectrum, dtype=torch.float64)) @ q.T


@pytest.mark.parametrize(
    "spectrum",
    [
        [3.0, 1.0, 0.5, -0.2],
        [0.5, -7.0, 0.1],  # the largest, not the one of the largest size
        [-1.0, -2.0, -3.0],
        [2.0, 2.0, 2.0],
        [0.0, 0.0],
        [4.0],
    ],
)
def test_a_known_spectrum(spectrum: list[float]) -> None:
    matrix = matrix_of(spectrum)
    found = largest_eigenvalue(lambda v: matrix @ v, len(spectrum), generator())
    assert found == pytest.approx(max(spectrum), abs=1e-9)


def test_few_products_find_one_that_stands_out() -> None:
    matrix = matrix_of([10.0, *torch.linspace(-1, 1, 99).tolist()])
    calls: list[torch.Tensor] = []

    def product(v: torch.Tensor) -> torch.Tensor:
        calls.append(v)
        return matrix @ v

    assert largest_eigenvalue(product, 100, generator()) == pytest.approx(10, rel=1e-6)
    assert len(calls) == 10


@pytest.mark.parametrize("execution", ["fused", "plain"])
def test_that_of_a_supernet_is_autograds(execution: Execution) -> None:
    pools = Pools.initial(1, (Conv(3), Pool("max", 3), Skip()))
    built = build_supernet(pools, 2, 3, 5, execution=execution)
    supernet = randomized(built.double(), 0)
    images = torch.randn(4, 3, 6, 6, dtype=torch.float64, generator=generator(2))
    labels = torch.tensor([0, 1, 2, 3])
    before = {name: value.clone() for name, value in supernet.state_dict().items()}
    # So near that no ReLU of these few pixels has its kink within reach.
    found = curvature(supernet, images, labels, generator(), reach=1e-6)
    for name, value in supernet.state_dict().items():
        assert torch.equal(value, before[name]), name
    twin = plain_of(supernet)
    weights = twin.architecture_parameters()
    loss = F.cross_entropy(twin(images), labels)
    gradients = torch.autograd.grad(loss, weights, create_graph=True)
    flat = torch.cat([g.flatten() for g in gradients])
    rows = [torch.autograd.grad(one, weights, retain_graph=True) for one in flat]
    hessian = torch.stack([torch.cat([g.flatten() for g in row]) for row in rows])
    expected = torch.linalg.eigvalsh(hessian)[-1].item()
    assert found == pytest.approx(expected, rel=1e-3)


def test_sampled_relaxations_are_measured_without_noise() -> None:
    relaxation = make_relaxation(ArchitectureConfig(relaxation="dirichlet"))
    pools = Pools.initial(1, (Conv(3), Skip()))
    supernet = build_supernet(pools, 2, 3, 5, relaxation=relaxation)
    images, labels = torch.randn(4, 3, 6, 6, generator=generator(2)), torch.tensor([0, 1, 2, 3])
    one, other = (curvature(supernet, images, labels, generator()) for _ in range(2))
    assert one == other

"""One-shot scores are of the cells that they are said to be of, and tau is Kendall's."""

from random import Random

import pytest
import torch
from torch.nn import functional as F

from benchmarks.truth import (
    by_weights,
    genotype_of,
    one_shot,
    random_choices,
    tau_of,
    true_accuracies,
)
from prnas.nets.supernet import build_supernet
from prnas.space.nasbench201.cells import NUM_CELLS, index_of
from prnas.space.nasbench201.table import column
from prnas.space.pools import Pools
from prnas.space.setting import SETTINGS
from prnas.space.shape import NASBENCH201
from prnas.studies.statistics import kendall_tau

POOLS = Pools.initial(3, SETTINGS["nasbench201"].initial_pool, NASBENCH201)


def test_cells_are_different_and_drawn_from_all() -> None:
    choices = random_choices(POOLS, 200, 0)
    assert choices == random_choices(POOLS, 200, 0) != random_choices(POOLS, 200, 1)
    indices = {index_of(genotype_of(POOLS, choice)) for choice in random_choices(POOLS, 10**6, 0)}
    assert indices == set(range(NUM_CELLS))
    assert sorted(true_accuracies(POOLS, random_choices(POOLS, 10**6, 0))) == pytest.approx(
        sorted(value / 1000 for value in column("e200_test_c10"))
    )


def test_a_one_shot_score_is_that_of_the_supernet_of_this_cell_alone() -> None:
    supernet = build_supernet(POOLS, 4, 3, 5, output="last").double()
    with torch.no_grad():
        for weights in supernet.architecture_parameters():
            weights.normal_(generator=torch.Generator().manual_seed(1))
    images = torch.randn(12, 3, 8, 8, generator=torch.Generator().manual_seed(0)).double()
    labels = torch.arange(12) % 5
    choices = random_choices(POOLS, 3, 4)
    before = {name: value.clone() for name, value in supernet.state_dict().items()}
    accuracy, loss = one_shot(supernet, choices, images, labels, batch=6)
    assert all(torch.equal(value, before[name]) for name, value in supernet.state_dict().items())
    weights = by_weights(supernet, choices)
    for number, choice in enumerate(choices):
        with torch.no_grad():
            for edge, chosen in zip(supernet.architecture_weights("normal"), choice, strict=True):
                edge.copy_(F.one_hot(torch.tensor(chosen), 5) * 1e4 - 1e4)
            logits = torch.cat([supernet.train()(images[:6]), supernet(images[6:])])
        assert loss[number] == pytest.approx(float(F.cross_entropy(logits, labels)), rel=1e-9)
        assert accuracy[number] == float((logits.argmax(1) == labels).double().mean())
        supernet.load_state_dict(before)
        edges = supernet.architecture_weights("normal")
        chosen = [edge.softmax(0)[index] for edge, index in zip(edges, choice, strict=True)]
        assert weights[number] == pytest.approx(torch.stack(chosen).log().sum().item())


def test_tau_has_an_interval_around_it() -> None:
    generator = Random(0)
    first = [generator.random() for _ in range(60)]
    second = [value + generator.gauss(0, 0.3) for value in first]
    tau = tau_of(first, second)
    assert tau is not None
    assert tau.tau == kendall_tau(first, second)
    assert 0 < tau.low < tau.tau < tau.high < 1
    assert tau_of(first, [1.0] * 60) is None
    same = tau_of(first, first)
    assert same is not None
    assert (same.low, same.high) == pytest.approx((1, 1))

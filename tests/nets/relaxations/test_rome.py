"""The relaxation of ROME: sampled edges, and one sampled candidate on each of them."""

from collections import Counter
from typing import cast

import pytest
import torch

from prnas.config.architecture import Anneal, ArchitectureConfig
from prnas.config.choices import Execution
from prnas.nets.paths import unweighted
from prnas.nets.relaxations import make_relaxation
from prnas.nets.relaxations.rome import Rome, largest
from prnas.nets.supernet import Supernet, build_supernet
from prnas.space.operations import Conv, Pool, Skip
from prnas.space.pools import Pools
from tests.support.generators import generator
from tests.support.supernets import randomized

SETTINGS = ArchitectureConfig(relaxation="rome", temperature=Anneal(start=2, end=1))


def built(execution: Execution = "fused", nodes: int = 3) -> Supernet:
    pools = Pools.initial(nodes, (Conv(3), Pool("max", 3), Skip()))
    relaxation = make_relaxation(SETTINGS)
    supernet = build_supernet(pools, 4, 3, 5, relaxation=relaxation, execution=execution)
    return randomized(supernet.double(), 0)


@pytest.mark.parametrize("training", [True, False])
def test_every_node_has_two_edges_with_one_candidate_each(training: bool) -> None:
    supernet = built().train(training)
    for seed in range(5):
        for edges in supernet.mixing(generator(seed)).values():
            assert all(set(edge.tolist()) <= {0.0, 1.0} for edge in edges)
            sums = [int(edge.sum()) for edge in edges]
            assert max(sums) == 1
            assert [sum(sums[:2]), sum(sums[2:5]), sum(sums[5:9])] == [2, 2, 2]


@pytest.mark.parametrize("execution", ["fused", "plain"])
def test_a_pass_computes_what_was_drawn_and_trains_all_weights_of_a_node(
    execution: Execution,
) -> None:
    supernet = built(execution)
    mixing = supernet.mixing(generator(3))
    active = {
        role: tuple(tuple(edge.nonzero().flatten().tolist()) for edge in edges)
        for role, edges in mixing.items()
    }
    images = torch.randn(2, 3, 8, 8, dtype=torch.float64, generator=generator(1))
    logits = supernet(images, generator(3))
    expected = supernet(images, None, active, unweighted(supernet))
    assert torch.equal(logits, expected)
    logits.square().sum().backward()
    relaxation = cast(Rome, supernet.relaxation)
    for node in relaxation.nodes("normal")[1:]:  # of two edges both are always drawn
        assert node.grad is not None
        assert (node.grad != 0).any()
    for cell in supernet.search_cells:
        for edge, chosen in enumerate(active[cell.plan.role]):
            for index, module in enumerate(cell.operations[edge].children()):
                assert all((w.grad is not None) == (index in chosen) for w in module.parameters())


def test_edges_are_drawn_without_replacement_by_their_softmax() -> None:
    """Gumbel's largest two of three: each pair with its probability."""
    supernet = built(nodes=2)
    relaxation = cast(Rome, supernet.relaxation)
    node = relaxation.nodes("normal")[1]
    with torch.no_grad():
        node.copy_(torch.tensor([1.0, 0.0, -0.5]))
    p = node.softmax(0).tolist()
    draws, number, pairs = generator(), 1500, Counter[tuple[int, ...]]()
    weights = supernet.architecture_weights("normal")
    for _ in range(number):
        mixing = relaxation.mix("normal", weights, draws)[2:5]
        pairs[tuple(i for i, edge in enumerate(mixing) if edge.sum())] += 1
    chi_square = 0.0
    for i, j in ((0, 1), (0, 2), (1, 2)):
        expected = number * p[i] * p[j] * (1 / (1 - p[i]) + 1 / (1 - p[j]))
        chi_square += (pairs[i, j] - expected) ** 2 / expected
    assert chi_square < 13.8  # exceeded once in a thousand, with two degrees of freedom


def test_edges_are_judged_by_their_own_weights() -> None:
    supernet = built(nodes=1)
    relaxation = cast(Rome, supernet.relaxation)
    (node,) = relaxation.nodes("normal")
    weights = supernet.architecture_weights("normal")
    scores = [Rome.scores(edge.tolist()) for edge in supernet.judged()["normal"]]
    for edge, found, share in zip(weights, scores, node.softmax(0).tolist(), strict=True):
        assert max(found) == pytest.approx(share)
        assert [score / sum(found) for score in found] == pytest.approx(edge.softmax(0).tolist())


def test_the_largest() -> None:
    assert largest(torch.tensor([0.1, 3.0, 2.0, -1.0]), 2).tolist() == [0.0, 1.0, 1.0, 0.0]

"""A path of a supernet is a network of its own."""

import copy
from random import Random

import pytest
import torch
from torch.nn import functional as F

from prnas.config.choices import Execution
from prnas.nets.paths import path_logits, path_scores
from prnas.nets.supernet import build_supernet
from prnas.space.change import CellChange, Change, EdgeChange, Pruned
from prnas.space.paths import Path, fair_group
from prnas.space.pools import Pools
from prnas.space.setting import SETTINGS
from tests.support.supernets import random_pools, randomized, relative


def only(pools: Pools, path: Path) -> Change:
    """The change that leaves a path's candidates alone."""

    def edge(role, number: int) -> EdgeChange:  # pyright: ignore
        candidates = pools.cell(role).edges[number].candidates
        stays = path[role][number]
        return EdgeChange(tuple(Pruned(op, 0.0) for i, op in enumerate(candidates) if i != stays))

    cells = [
        CellChange(tuple(edge(role, number) for number in range(len(pools.cell(role).edges))))
        for role in pools.roles
    ]
    return Change(*cells)


@pytest.mark.parametrize("execution", ["fused", "plain"])
@pytest.mark.parametrize("seed", [0, 1])
def test_it_is_the_supernet_that_holds_nothing_else(execution: Execution, seed: int) -> None:
    pools = random_pools(SETTINGS["unrestricted"], 2, Random(seed))
    supernet = randomized(build_supernet(pools, 4, 4, 5, execution=execution).double(), seed)
    images, labels = torch.randn(6, 3, 8, 8).double(), torch.arange(6) % 5
    path = fair_group(pools, Random(seed))[0]
    alone = copy.deepcopy(supernet)
    alone.evolve(only(pools, path), torch.Generator())
    loss = F.cross_entropy(path_logits(supernet, images, path), labels)
    expected = F.cross_entropy(alone(images), labels)
    assert relative(loss, expected) < 1e-10
    loss.backward()
    expected.backward()
    gradients = {n: w.grad for n, w in supernet.named_parameters() if "architecture" not in n}
    theirs = [w.grad for n, w in alone.named_parameters() if "architecture" not in n]
    ours = [grad for grad in gradients.values() if grad is not None]
    assert len(ours) == len([grad for grad in theirs if grad is not None])
    largest = max(float(grad.abs().max()) for grad in ours)
    for mine, their in zip(ours, (grad for grad in theirs if grad is not None), strict=True):
        torch.testing.assert_close(mine, their, rtol=1e-9, atol=1e-11 * largest)
    assert any(grad is None for grad in gradients.values())  # what is not on the path


def test_scores_change_no_bit_and_an_omitted_edge_takes_no_part() -> None:
    pools = random_pools(SETTINGS["darts-like"], 2, Random(4))
    supernet = randomized(build_supernet(pools, 4, 4, 5).double(), 4)
    supernet.train()
    images, labels = torch.randn(6, 3, 8, 8).double(), torch.arange(6) % 5
    before = {name: value.clone() for name, value in supernet.state_dict().items()}
    path = fair_group(pools, Random(1))[0]
    scores = path_scores(
        supernet, images, labels, [(path, None), (path, ("normal", 1)), (path, None)]
    )
    assert scores.loss.shape == (3, 6)
    assert torch.equal(scores.loss[0], scores.loss[2])
    assert not torch.equal(scores.loss[0], scores.loss[1])
    logits = path_logits(supernet, images, path)  # in training mode: with the batch's statistics
    torch.testing.assert_close(scores.loss[0], F.cross_entropy(logits, labels, reduction="none"))
    after = supernet.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed  # by the training pass, ...
    supernet.load_state_dict(before)
    path_scores(supernet, images, labels, [(path, None)])
    assert all(torch.equal(before[name], value) for name, value in supernet.state_dict().items())
    assert supernet.training

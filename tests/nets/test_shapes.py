"""Supernets and final networks of every shape: the fast ones are the plain ones."""

import copy
from random import Random
from typing import Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from prnas.config.choices import Execution
from prnas.nets import plain_network
from prnas.nets.network import build
from prnas.nets.removal import CandidateIndex, ImageScores, scores_without
from prnas.nets.search_cell import ActiveCell
from prnas.nets.supernet import build_supernet
from prnas.space.analysis.sampling import random_genotype
from prnas.space.change import Change
from prnas.space.network_size import network_size
from prnas.space.operations import Conv, Conv1x7x1, Operation, Pool, Skip, Zero
from prnas.space.setting import INITIAL_POOL, Limits, Setting
from prnas.space.shape import DARTS, NASBENCH201, CellShape, Output, Role
from tests.support.networks import as_plain, measured
from tests.support.strategies import random_weights, shapes
from tests.support.supernets import (
    OnlyActive,
    check_equal,
    plain_of,
    random_active,
    random_pools,
    randomized,
    relative,
)

OPERATIONS: list[Operation] = [Zero(), *INITIAL_POOL, Conv(5, 2), Conv(1, 1, (2,)), Conv1x7x1()]
SETTING = Setting("all", Limits(1, 7, 2, None, None), tuple(OPERATIONS))
WAYS: tuple[Execution, ...] = ("fused", "plain")


def outputs_of(shape: CellShape) -> st.SearchStrategy[Output]:
    outputs: list[Output] = ["mean", "sum", "last"]
    return st.sampled_from(outputs if shape.network == "residual" else ["concat", *outputs])


@pytest.mark.parametrize("execution", ["fused", "plain"])
@settings(max_examples=12)
@given(st.data())
def test_the_supernet_is_the_plain_one(execution: Execution, data: st.DataObject) -> None:
    shape, seed = data.draw(shapes), data.draw(st.integers(0, 10**6))
    pools = random_pools(SETTING, data.draw(st.integers(1, 3)), Random(seed), 1, shape)
    output = data.draw(outputs_of(shape))
    recompute = data.draw(st.booleans())
    built = build_supernet(pools, 4, 3, 5, output=output, recompute=recompute, execution=execution)
    supernet = randomized(built.double(), seed).train(data.draw(st.booleans()))
    height, width = (data.draw(st.sampled_from([7, 8, 12])) for _ in range(2))
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(3, 3, height, width, dtype=torch.float64, generator=generator)
    check_equal(supernet, plain_of(supernet), images)


@pytest.mark.parametrize("execution", ["fused", "plain"])
def test_only_active_candidates(execution: Execution) -> None:
    pools = random_pools(SETTING, 3, Random(1), 1, NASBENCH201)
    supernet = build_supernet(pools, 4, 3, 5, output="last", execution=execution).double()
    randomized(supernet, 1).eval()
    images = torch.randn(3, 3, 8, 8, dtype=torch.float64)
    for seed in range(3):
        active = random_active(pools, Random(seed))
        twin = copy.deepcopy(supernet)
        twin.relaxation = OnlyActive(active)
        assert relative(supernet(images, active=active), twin(images)) < 1e-10


@pytest.mark.parametrize("statistics", ["batch", "running"])
@pytest.mark.parametrize(
    ("shape", "cells"), [(NASBENCH201, 6), (CellShape(("normal",), inputs=1), 3)]
)
def test_scores_without_some_candidates(
    statistics: Literal["batch", "running"], shape: CellShape, cells: int
) -> None:
    pools = random_pools(SETTING, 3, Random(2), 1, shape)
    supernet = randomized(build_supernet(pools, 4, cells, 5, output="last").double(), 2)
    images, labels = torch.randn(6, 3, 8, 8, dtype=torch.float64), torch.arange(6) % 5
    edges = enumerate(pools.normal.edges)
    candidates = [
        CandidateIndex("normal", edge, index)
        for edge, pool in edges
        for index in range(len(pool.candidates))
    ]
    removals = [frozenset(Random(seed).sample(candidates, seed % 3 + 1)) for seed in range(4)]
    twin = copy.deepcopy(supernet).train(statistics == "batch")
    found: list[ImageScores] = []
    for execution in WAYS:
        supernet.execution = execution
        found.append(scores_without(supernet, images, labels, removals, statistics=statistics))
    for row, removed in enumerate(removals):
        active: dict[Role, ActiveCell] = {
            "normal": tuple(
                tuple(
                    index
                    for index in range(len(pool.candidates))
                    if CandidateIndex("normal", edge, index) not in removed
                )
                for edge, pool in enumerate(pools.normal.edges)
            )
        }
        twin.relaxation = OnlyActive(active)
        with torch.no_grad():
            logits = twin(images)
        expected = F.cross_entropy(logits, labels, reduction="none")
        assert all(relative(scores.loss[row], expected) < 1e-10 for scores in found)


@pytest.mark.parametrize("shape", [NASBENCH201, CellShape(("normal",), 1, "all"), CellShape()])
def test_children_inherit_in_every_cell(shape: CellShape) -> None:
    generator = Random(3)
    pools = random_pools(SETTING, 3, generator, 0, shape)
    supernet = randomized(build_supernet(pools, 4, 3, 5, output="mean").double(), 3)
    for _ in range(2):
        pools = supernet.pools
        change = Change.of(
            {
                role: pools.cell(role).evolve(
                    random_weights(pools.cell(role), generator), 2, 2, SETTING.limits, generator
                )[1]
                for role in pools.roles
            }
        )
        supernet.evolve(change, torch.Generator().manual_seed(0))
        assert supernet.pools == pools.apply(change)
        for role in pools.roles:
            sizes = [len(edge.candidates) for edge in supernet.pools.cell(role).edges]
            assert [len(edge) for edge in supernet.architecture_weights(role)] == sizes
        check_equal(supernet, plain_of(supernet), torch.randn(3, 3, 8, 8, dtype=torch.float64))


@settings(max_examples=12)
@given(st.data())
def test_the_final_network_is_the_plain_one_and_as_large_as_counted(data: st.DataObject) -> None:
    shape, seed = data.draw(shapes), data.draw(st.integers(0, 10**6))
    output = data.draw(outputs_of(shape))
    genotype = random_genotype(
        OPERATIONS, Random(seed), data.draw(st.integers(1, 3)), shape, output
    )
    cells = data.draw(st.sampled_from([3, 6] if shape.network == "residual" else [3, 4, 6]))
    ours = build(genotype, 4, cells, 5, output=output, auxiliary=True).double()
    twin = plain_network.Network(genotype, 4, cells, 5, output=output).double()
    twin.load_state_dict(as_plain(ours.state_dict()))
    size = data.draw(st.sampled_from([32, 33]))
    images = torch.randn(2, 3, size, 32, dtype=torch.float64)
    found: list[tuple[torch.Tensor, torch.Tensor]] = []
    if size == 32:  # the plain auxiliary head takes no other features
        for network in (ours, twin):
            network.drop_path_probability = 0.3
            torch.manual_seed(1)  # for the paths that drop
            found.append(network(images))
            (found[-1][0].square().sum() + 0.4 * found[-1][1].square().sum()).backward()
        torch.testing.assert_close(*found, rtol=1e-9, atol=1e-9)
        theirs = dict(twin.named_parameters())
        for name, weight in as_plain({**dict(ours.named_parameters())}).items():
            expected = theirs[name].grad
            if weight.grad is None:
                assert expected is None or expected.abs().max() == 0
                continue
            assert expected is not None
            close = 1e-9 * max(1, expected.abs().max().item())
            torch.testing.assert_close(weight.grad, expected, rtol=0, atol=close, msg=name)
        state = as_plain(ours.state_dict())
        torch.testing.assert_close(state, dict(twin.state_dict()), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(ours.eval()(images), twin.eval()(images))
    alone = build(genotype, 4, cells, 5, output=output).eval()
    counted = network_size(genotype, 4, cells, 5, output=output, image_size=(size, 32))
    assert measured(alone, torch.randn(1, 3, size, 32)) == counted


def test_the_published_network_of_nasbench201() -> None:
    """Its outer form; tests/space/test_network_size.py has the sum of its parts."""
    genotype = random_genotype([Skip()], Random(0), 3, NASBENCH201, "last")
    network = build(genotype, 16, 15, 10).eval()
    assert sum(weight.numel() for weight in network.parameters()) == 73_306
    assert list(network.blocks) == ["5", "10"]
    # All skips: state 1 is x, state 2 is 2x, and state 3, the output, 4x.
    x = torch.randn(2, 16, 8, 8)
    assert torch.equal(network.cells[0](x, x, 0.0, None), 4 * x)
    # Pooling has no BN, and padded zeros do not count.
    pooled = random_genotype([Pool("avg")], Random(0), 3, NASBENCH201, "last")
    cell = build(pooled, 16, 15, 10).cells[0]
    assert not list(cell.parameters())
    ones = torch.ones(1, 16, 5, 5)
    torch.testing.assert_close(cell(ones, ones, 0.0, None), 4 * ones)


def test_the_weights_of_darts_networks_are_drawn_as_before() -> None:
    """One number of the last layer drawn: another order of layers would give another."""
    genotype = random_genotype(list(INITIAL_POOL), Random(0))
    assert build(genotype, 4, 3, 5).classifier.bias[0].item() == pytest.approx(FINAL, abs=1e-8)
    supernet = build_supernet(random_pools(SETTING, 2, Random(0), 0), 4, 3, 5)
    assert supernet.pools.shape == DARTS
    assert supernet.classifier.bias[0].item() == pytest.approx(SUPERNET, abs=1e-8)


FINAL, SUPERNET = 0.03070080280303955, 0.07670576870441437


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"cells": 4, "output": "last"}, "cells must be a multiple of 3"),
        ({"cells": 3, "output": "concat"}, "output must be mean, sum or last"),
    ],
)
def test_a_residual_network_that_cannot_be(options: dict[str, object], said: str) -> None:
    pools = random_pools(SETTING, 3, Random(0), 0, NASBENCH201)
    with pytest.raises(ValueError, match=said):
        build_supernet(pools, 4, **options)  # pyright: ignore[reportArgumentType]
    genotype = random_genotype(OPERATIONS, Random(0), 3, NASBENCH201)
    with pytest.raises(ValueError, match=said):
        build(genotype, 4, **options)  # pyright: ignore[reportArgumentType]

"""The expected cost of the final network, as a part of the architecture weights' loss."""

import os
import signal
from math import log
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import prnas
from prnas.config.search import SearchConfig
from prnas.runs.run import Stopped
from prnas.searching.api import resume, start
from prnas.searching.penalties.expected_cost import cost_shares, expected, log_power
from prnas.space.analysis.sampling import random_genotype
from prnas.space.costs import KINDS, CostKind, Costs
from prnas.space.final_network import FinalNetwork
from prnas.space.genotype import Genotype
from prnas.space.latency import LatencyTable, key
from prnas.space.operations import Conv, Pool, Skip
from prnas.space.pools import Pools
from prnas.space.shape import DARTS, NASBENCH201, CellShape, Role
from tests.support.settings import small_config
from tests.support.strategies import seeds
from tests.support.watching import Watch, assert_same_run, folder_of

OPERATIONS = (Skip(), Conv(3), Conv(5, 1, (1,)), Pool("avg"))
Edges = dict[Role, list[Tensor]]
shapes = st.sampled_from([(DARTS, 4), (NASBENCH201, 3)])


def final(shape: CellShape, nodes: int) -> FinalNetwork:
    output = "last" if shape.network == "residual" else "concat"
    states = len(shape.output_states(nodes, output))
    return FinalNetwork(8, 6, 5, "cifar", output, 3, 16, 16, nodes, states, shape)


def tensors(costs: Costs, pools: Pools, kind: CostKind) -> Edges:
    shares = cost_shares(costs, pools, kind, 1)
    return {
        role: [torch.tensor(edge, dtype=torch.float64) for edge in edges]
        for role, edges in shares.items()
    }


def one_hot(pools: Pools, genotype: Genotype) -> Edges:
    """The mixing weights of one cell: 1 for its operations, 0 for all others."""
    mixing: Edges = {}
    for role in pools.roles:
        chosen = {(state, edge.input): edge.op for state, edge in genotype.cell(role).edges}
        mixing[role] = [
            torch.tensor([float(chosen.get(place) == op) for op in OPERATIONS]).double()
            for place in pools.cell(role).positions
        ]
    return mixing


def made_up_table(network: FinalNetwork) -> LatencyTable:
    places = [
        (op, place.plan.channels, *place.reads(source, network.shape))
        for op in OPERATIONS
        for place in network.around[1]
        for source in range(network.shape.inputs + 1)
    ]
    keys = dict.fromkeys(key(*place) for place in places)
    return LatencyTable(network, 1_000, {name: 997 * n for n, name in enumerate(keys, 1)})


@given(shapes, seeds, st.sampled_from(KINDS[:2]))
def test_of_one_cell_it_is_the_size_of_its_network(
    shaped: tuple[CellShape, int], seed: int, kind: CostKind
) -> None:
    """One candidate on each of the edges that the nodes keep."""
    shape, nodes = shaped
    network = final(shape, nodes)
    pools = Pools.initial(nodes, OPERATIONS, shape)
    genotype = random_genotype(OPERATIONS, Random(seed), nodes, shape, network.output)
    costs = Costs(network)
    size = network.size(genotype)
    around = costs.around.of(kind)
    mixing = one_hot(pools, genotype)
    found = around + expected(mixing, tensors(costs, pools, kind), shape).item()
    assert round(found) == (size.parameters if kind == "params" else size.macs)


@given(shapes, seeds)
def test_of_one_cell_it_is_the_latency_of_its_network(
    shaped: tuple[CellShape, int], seed: int
) -> None:
    """By a table in which every operation takes another time in every place."""
    shape, nodes = shaped
    network = final(shape, nodes)
    costs = Costs(network, made_up_table(network))
    pools = Pools.initial(nodes, OPERATIONS, shape)
    genotype = random_genotype(OPERATIONS, Random(seed), nodes, shape, network.output)
    shares = tensors(costs, pools, "latency")
    found = expected(one_hot(pools, genotype), shares, shape).item()
    assert round(found) == costs.total(genotype).latency - costs.around.latency > 0


@given(shapes, seeds)
def test_its_gradient(shaped: tuple[CellShape, int], seed: int) -> None:
    """dE/da_k = s p_k (c_k - sum p c), where s is the share of its edges that a node keeps."""
    shape, nodes = shaped
    pools = Pools.initial(nodes, OPERATIONS, shape)
    costs = tensors(Costs(final(shape, nodes)), pools, "params")
    generator = torch.Generator().manual_seed(seed)
    weights: Edges = {
        role: [
            torch.randn(len(OPERATIONS), dtype=torch.float64, generator=generator).requires_grad_()
            for _ in pools.cell(role).edges
        ]
        for role in pools.roles
    }
    mixing: Edges = {role: [edge.softmax(0) for edge in edges] for role, edges in weights.items()}
    expected(mixing, costs, shape).backward()
    for role in pools.roles:
        rows = zip(
            pools.cell(role).positions, weights[role], mixing[role], costs[role], strict=True
        )
        for (state, _), edge, p, c in rows:
            kept = shape.num_edges(state) / state
            exact = kept * p * (c - (p * c).sum())
            assert edge.grad is not None
            torch.testing.assert_close(edge.grad, exact.detach(), rtol=1e-9, atol=1e-9)


def test_weights_on_edges_count() -> None:
    """Mixing weights that sum up to 1 over a node, not over each edge: twice an edge's weight."""
    pools = Pools.initial(2, OPERATIONS)
    costs = tensors(Costs(final(DARTS, 2)), pools, "params")
    generator = torch.Generator().manual_seed(0)
    edge_weights = {2: torch.tensor([0.3, 0.7]), 3: torch.tensor([0.5, 0.1, 0.4])}
    mixing: Edges = {}
    by_hand = 0.0
    for role in pools.roles:
        mixing[role] = []
        for (state, source), c in zip(pools.cell(role).positions, costs[role], strict=True):
            p = torch.rand(len(OPERATIONS), dtype=torch.float64, generator=generator)
            p /= p.sum()
            b = edge_weights[state][source].double()
            mixing[role].append(b * p)
            by_hand += 2 * (b * (p * c).sum()).item()
    assert expected(mixing, costs, DARTS).item() == pytest.approx(by_hand)


def test_the_log_power_form() -> None:
    share = torch.tensor(1.5, dtype=torch.float64)
    exact = (log(1.5 * 3e6) / log(3e6)) ** 0.6
    assert log_power(share, 3e6, 0.6).item() == pytest.approx(exact)
    assert log_power(torch.tensor(1.0), 3e6, 0.6).item() == 1.0


def costly(images: Path, /, **cost: Any) -> Any:
    return small_config(
        images,
        network={"nodes": 2},
        schedule={"cycles": [{"epochs": 2, "grace_epochs": 0, "morphisms": 0, "candidates": 1}]},
        evidence={"measure": "none"},
        architecture={"lr": "auto", "travel": 3.0, "cost": cost or None},
        final={"cells": 5, "channels": 8},
    )


@pytest.mark.parametrize(
    "cost",
    [
        {"of": "params", "weight": 100.0, "reference": "10k"},
        {"of": "macs", "weight": 20.0, "reference": "50k", "form": "log-power"},
    ],
)
def test_a_heavy_penalty_finds_a_smaller_network(
    images: Path, tmp_path: Path, cost: dict[str, Any]
) -> None:
    kind: CostKind = cost["of"]
    costs = Costs(costly(images).final_network(3, (3, 8, 8)))
    free = prnas.search(costly(images))
    config = costly(images, **cost)
    cheap = start(config, runs=tmp_path, name="whole")
    assert costs.total(cheap.genotype).of(kind) < costs.total(free.genotype).of(kind)
    # The loss that is told is the cross entropy, without the penalty.
    first = next(one for one in cheap.epochs if "architecture" in one.scores)
    assert first.scores["architecture"].loss < 3
    stop = Watch(4, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped) as caught:
        start(config, runs=tmp_path, callbacks=[stop])
    folder = folder_of(caught.value)
    resume(folder)
    assert_same_run(folder, tmp_path / "whole")


def test_a_heavy_penalty_on_latency_leaves_what_the_table_calls_slow(images: Path) -> None:
    """It is what the search finds without the penalty."""
    settings = costly(images)
    network = settings.final_network(3, (3, 8, 8))
    _, first = next(iter(prnas.search(settings).genotype.normal.edges))
    slow = first.op
    places = {
        key(op, place.plan.channels, *place.reads(source, network.shape)): (
            90_000 if op == slow else 10_000
        )
        for op in settings.space.initial_pool
        for place in network.around[1]
        for source in (0, 2)
    }
    data = settings.to_data()
    data["final"]["latency"] = LatencyTable(network, 1_000, places).to_json()
    data["architecture"]["cost"] = {"of": "latency", "weight": 100.0, "reference": "100us"}
    found = prnas.search(SearchConfig.from_data(data))
    for role in found.genotype.roles:
        assert slow not in found.genotype.cell(role).operations


def test_the_more_it_weighs_the_cheaper_is_what_is_found(images: Path) -> None:
    """Multiply-accumulates do not rise with the weight; a weight of nothing is none, to the bit."""
    costs = Costs(costly(images).final_network(3, (3, 8, 8)))
    penalties = [{"of": "macs", "weight": w, "reference": "50k"} for w in (1e-30, 0.3, 3.0, 30.0)]
    free, barely, *others = (prnas.search(costly(images, **one)) for one in ({}, *penalties))
    assert free.genotype == barely.genotype
    assert [one.scores for one in free.epochs] == [one.scores for one in barely.epochs]
    found = [costs.total(one.genotype).of("macs") for one in (free, *others)]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1]


def test_without_it_nothing_changes(images: Path) -> None:
    """Not even where limits make costs known."""
    one = prnas.search(costly(images))
    limited = costly(images).override(["final.max_params=1G"])
    other = prnas.search(limited)
    assert [epoch.scores for epoch in one.epochs] == [epoch.scores for epoch in other.epochs]
    assert one.genotype == other.genotype

"""The best genotype within limits, compared with trying all genotypes."""

from collections.abc import Sequence
from itertools import combinations, product
from math import fsum
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prnas.space.costs import Cost, CostKind, Costs
from prnas.space.derivation import RankedEdge, derive
from prnas.space.edge_pool import EdgePool
from prnas.space.final_network import FinalNetwork
from prnas.space.fitting import NetworkLimits, derive_fitting, in_short, in_words, strengths
from prnas.space.genotype import Cell, Edge, Genotype
from prnas.space.latency import LatencyTable, key
from prnas.space.operations import Conv, Operation, PlainConv, Pool, Skip, Zero
from prnas.space.pools import CellPools, Pools
from prnas.space.scores import softmax
from prnas.space.shape import DARTS, NASBENCH201, CellShape, Role
from prnas.space.worth import EdgeWorth
from tests.support.strategies import seeds

OPERATIONS = (Skip(), Conv(3), Conv(5, 1, (1,)), Conv(3, 2), Pool("max"), PlainConv(3), Zero())
Weights = dict[Role, list[list[float]]]
ONE_CELL = CellShape(("normal",), inputs=1, reads="two")


def small_search(seed: int, shape: CellShape, nodes: int, size: int) -> tuple[Pools, Weights]:
    """Pools and architecture weights, few enough to try everything."""
    generator = Random(seed)
    usable = [op for op in OPERATIONS if shape.reads == "all" or not isinstance(op, Zero)]
    number = len(Pools.initial(nodes, [Skip()], shape).normal.edges)
    pools = Pools.of(
        {
            role: CellPools(
                nodes,
                tuple(EdgePool.initial(generator.sample(usable, size)) for _ in range(number)),
                shape,
            )
            for role in shape.roles
        }
    )
    scale = generator.choice([0.0, 0.5, 2.0])
    weights: Weights = {
        role: [[generator.gauss(0, scale) for _ in range(size)] for _ in range(number)]
        for role in shape.roles
    }
    return pools, weights


def final(shape: CellShape, nodes: int) -> FinalNetwork:
    output = "last" if shape.network == "residual" else "concat"
    states = len(shape.output_states(nodes, output))
    return FinalNetwork(4, 3, 5, "cifar", output, 3, 8, 8, nodes, states, shape)


def every_genotype(pools: Pools, weights: Weights, output: str) -> list[tuple[Genotype, float]]:
    """All that a search could end with, each with its total strength."""
    cells: list[list[tuple[Cell, float]]] = []
    shape = pools.shape
    for role in pools.roles:
        cell = pools.cell(role)
        rows = zip(cell.positions, cell.edges, weights[role], strict=True)
        choices = {
            position: [
                (Edge(position[1], op), strength)
                for op, strength in zip(pool.candidates, softmax(alphas), strict=True)
            ]
            for position, pool, alphas in rows
        }
        nodes: list[list[tuple[tuple[Edge, ...], float]]] = []
        for state in shape.nodes(cell.num_nodes):
            found: list[tuple[tuple[Edge, ...], float]] = []
            for inputs in combinations(range(state), shape.num_edges(state)):
                for picked in product(*(choices[state, source] for source in inputs)):
                    found.append((tuple(e for e, _ in picked), fsum(s for _, s in picked)))
            nodes.append(found)
        concat = shape.output_states(cell.num_nodes, output)  # pyright: ignore
        cells.append(
            [
                (Cell(tuple(n for n, _ in picked), concat, shape=shape), fsum(s for _, s in picked))
                for picked in product(*nodes)
            ]
        )
    return [
        (Genotype(*(cell for cell, _ in both)), fsum(s for _, s in both))
        for both in product(*cells)
    ]


searches = st.sampled_from(
    [
        (DARTS, 1, 3),
        (DARTS, 2, 2),
        (ONE_CELL, 2, 3),
        (NASBENCH201, 2, 3),
        (NASBENCH201, 3, 2),
    ]
)


@settings(max_examples=25)
@given(searches, seeds, st.integers(0, 100), st.sampled_from(["params", "macs", "both"]))
def test_no_genotype_that_fits_is_stronger(
    kind: tuple[CellShape, int, int], seed: int, share: int, of: str
) -> None:
    shape, nodes, size = kind
    pools, weights = small_search(seed, shape, nodes, size)
    network = final(shape, nodes)
    costs = Costs(network)
    every = [
        (genotype, strength, costs.total(genotype))
        for genotype, strength in every_genotype(pools, weights, network.output)
    ]

    def between(amounts: Sequence[int]) -> int:
        """From just below the least to above the most."""
        return min(amounts) - 1 + share * (max(amounts) - min(amounts) + 2) // 100

    params = between([cost.params for *_, cost in every]) if of != "macs" else None
    macs = between([cost.macs for *_, cost in every]) if of != "params" else None
    limits = NetworkLimits(params, macs)
    rest = {"output": network.output}
    genotype, change, fit = derive_fitting(
        pools,
        weights,
        Random(seed),
        costs,
        limits,
        **rest,  # pyright: ignore[reportArgumentType]
    )
    own, own_change = derive(pools, weights, Random(seed), **rest)  # pyright: ignore
    assert (fit.own, fit.own_cost) == (own, costs.total(own))
    assert fit.cost == costs.total(genotype)
    fitting = [strength for _, strength, cost in every if not limits.exceeded(cost)]
    if not fitting:
        assert not fit.fits
        assert (genotype, change) == (own, own_change)
        assert fit.smallest is not None
        assert fit.smallest.params == min(cost.params for *_, cost in every)
        assert fit.smallest.macs == min(cost.macs for *_, cost in every)
        return
    assert fit.fits
    assert not limits.exceeded(fit.cost)
    assert fit.strength == pytest.approx(max(fitting), abs=1e-9)
    assert {genotype: strength for genotype, strength, _ in every}[genotype] == pytest.approx(
        fit.strength, abs=1e-9
    )
    if not limits.exceeded(costs.total(own)):
        assert (genotype, change) == (own, own_change)
        assert fit.given_up == ()
    # The pools end with what the genotype has, on the edges that it has.
    after = pools.apply(change)
    for role in pools.roles:
        kept = dict(zip(after.cell(role).positions, after.cell(role).edges, strict=True))
        assert all(len(pool.candidates) == 1 for pool in kept.values())
        for state, edge in genotype.cell(role).edges:
            assert kept[state, edge.input].candidates == (edge.op,)


@settings(max_examples=15)
@given(seeds, st.integers(0, 2), st.integers(0, 2), st.integers(0, 100))
def test_bounds_on_skips_hold_too(seed: int, normal: int, reduction: int, share: int) -> None:
    pools, weights = small_search(seed, DARTS, 2, 2)
    costs = Costs(final(DARTS, 2))
    bounds: dict[Role, int] = {"normal": normal, "reduction": reduction}

    def skips(genotype: Genotype, role: Role) -> int:
        return sum(isinstance(op, Skip) for op in genotype.cell(role).operations)

    every = every_genotype(pools, weights, "concat")
    least = {role: min(skips(genotype, role) for genotype, _ in every) for role in bounds}
    allowed = [
        (costs.total(genotype), strength)
        for genotype, strength in every
        if all(skips(genotype, role) <= max(bounds[role], least[role]) for role in bounds)
    ]
    sizes = [cost.params for cost, _ in allowed]
    limit = min(sizes) - 1 + share * (max(sizes) - min(sizes) + 2) // 100
    limits = NetworkLimits(params=limit)
    genotype, _, fit = derive_fitting(pools, weights, Random(0), costs, limits, bounds)
    fitting = [strength for cost, strength in allowed if cost.params <= limit]
    if fit.own_cost.params <= limit:
        assert genotype == fit.own
    elif fitting:
        assert fit.strength == pytest.approx(max(fitting), abs=1e-9)
    else:
        assert not fit.fits
        assert fit.smallest is not None
        assert fit.smallest.params == min(sizes)


def test_a_latency_is_a_limit_as_any_other() -> None:
    pools = Pools.initial(1, [Conv(3), Skip()])
    network = final(DARTS, 1)
    times = {Conv(3): 1, Skip(): 50}
    table = LatencyTable(
        network,
        7,
        {
            key(op, c, (s, s), stride): value
            for op, value in times.items()
            for c, s, stride in ((4, 8, 1), (8, 8, 2), (16, 4, 2))
        },
    )
    weights: Weights = dict.fromkeys(("normal", "reduction"), [[0.0, 1.0]] * 2)
    costs = Costs(network, table)
    genotype, _, fit = derive_fitting(pools, weights, Random(0), costs, NetworkLimits(latency=159))
    assert fit.own_cost.latency == 7 + 6 * 50
    # A skip of the reduction cell takes as long as two of the normal one, and is worth as much.
    assert fit.cost.latency == 7 + 2 * 50 + 4 * 1
    assert genotype.normal.operations == (Skip(), Skip())
    assert genotype.cell("reduction").operations == (Conv(3), Conv(3))


def with_limit(params: int) -> tuple[Genotype, list[str], str]:
    pools = Pools.initial(1, [Conv(3), Skip()])
    weights: Weights = {"normal": [[1.0, 0.0], [2.0, 0.0]], "reduction": [[0.0, 1.0]] * 2}
    costs = Costs(final(DARTS, 1))
    genotype, _, fit = derive_fitting(
        pools, weights, Random(0), costs, NetworkLimits(params=params)
    )
    limits: dict[CostKind, int] = {kind: fit.limits.of(kind) or 0 for kind in fit.limits.kinds}
    cost: dict[CostKind, int] = {kind: fit.cost.of(kind) for kind in fit.limits.kinds}
    return genotype, in_words(fit), in_short(limits, cost, fit.fits, len(fit.given_up))


def test_what_was_given_up_is_said() -> None:
    costs = Costs(final(DARTS, 1))
    most = costs.around.params + 2 * costs.of("normal", 0, Conv(3)).params
    most += 2 * costs.of("reduction", 0, Skip()).params
    genotype, words, short = with_limit(most)
    assert genotype.normal.operations == (Conv(3), Conv(3))
    assert words == [f"the final network is within its limits: {most / 1000:.4g} k parameters"]
    assert "changed" not in short
    genotype, words, short = with_limit(most - 1)
    assert genotype.normal.operations == (Skip(), Conv(3))
    assert words[1:] == ["  normal cell, c(k-2) to B1: skip in place of conv 3x3"]
    assert "of the total strength (" in words[0]
    assert short.endswith("; 1 edge changed for it")
    own, words, short = with_limit(100)
    assert own.normal.operations == (Conv(3), Conv(3))
    assert len(words) == 1
    assert "nothing fits" in words[0]
    assert "the smallest network of the candidates that were left has" in words[0]
    assert short.endswith("nothing fits")


def test_limits_that_exclude_each_other() -> None:
    """Each alone could be kept; the message does not say otherwise."""
    pools = Pools.initial(1, [Conv(3), Skip()])
    network = final(DARTS, 1)
    slow = {Conv(3): 1, Skip(): 90}
    table = LatencyTable(
        network,
        0,
        {
            key(op, c, (s, s), stride): value
            for op, value in slow.items()
            for c, s, stride in ((4, 8, 1), (8, 8, 2), (16, 4, 2))
        },
    )
    costs = Costs(network, table)
    weights: Weights = dict.fromkeys(("normal", "reduction"), [[0.0, 1.0]] * 2)
    skips = [costs.of(role, 0, Skip()).params for role in ("normal", "reduction")]
    limits = NetworkLimits(params=costs.around.params + 2 * sum(skips), latency=6)
    _, _, fit = derive_fitting(pools, weights, Random(0), costs, limits)
    assert not fit.fits
    assert "each limit alone could be kept" in in_words(fit)[0]


def test_candidates_that_were_eliminated_are_not_ranked_by_strength_alone() -> None:
    ranked: tuple[tuple[Operation, float], ...] = ((Skip(), 0.2), (Conv(3), 0.9), (Conv(5), 0.1))
    edge = RankedEdge(2, 0, ranked, ranked, 0.5)
    assert strengths(edge) == [0.2, 0.2, 0.1]
    # So without need, an edge keeps what was ranked first.
    samples = ((0.9, 0.9), (0.2, 0.2))
    worth = EdgeWorth(samples, order=(1, 0), strengths=(0.9, 0.2))
    pools = Pools.initial(1, [Conv(3), Skip()])
    zeros: Weights = dict.fromkeys(("normal", "reduction"), [[0.0, 0.0]] * 2)
    worths: dict[Role, list[EdgeWorth]] = dict.fromkeys(("normal", "reduction"), [worth] * 2)
    network = final(DARTS, 1)
    genotype, _, fit = derive_fitting(
        pools, zeros, Random(0), Costs(network), NetworkLimits(params=10**9), worths=worths
    )
    assert genotype.normal.operations == (Skip(), Skip())
    assert fit.strength == pytest.approx(0.8)
    assert fit.to_json()["cost"]["params"] == fit.cost.params
    assert isinstance(fit.cost, Cost)

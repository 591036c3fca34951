from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.space.derivation import derive, derive_cell
from prnas.space.edge_pool import EdgePool, softmax
from prnas.space.genotype import Edge
from prnas.space.operations import Conv, Pool, Skip, Zero
from prnas.space.pools import CellPools, Pools
from prnas.space.setting import Setting
from tests.support.strategies import evolved_pools, random_weights, seeds


@given(evolved_pools(), seeds, st.none() | st.integers(0, 3))
def test_derivation_always_yields_a_valid_cell(
    evolved: tuple[Setting, CellPools], seed: int, max_skips: int | None
) -> None:
    _, pools = evolved
    weights = random_weights(pools, Random(seed))
    cell, change = derive_cell(pools, weights, Random(seed), max_skips)
    assert (cell, change) == derive_cell(pools, weights, Random(seed), max_skips)
    final = pools.apply(change)
    kept = dict(zip(final.positions, final.edges, strict=True))
    for state, edge in cell.edges:
        assert kept[state, edge.input].candidates == (edge.op,)
    assert all(len(pool.candidates) == 1 for pool in final.edges)
    assert not any(isinstance(op, Zero) for op in cell.operations)
    assert cell.concat == tuple(range(2, 2 + pools.num_nodes))
    assert not cell.repeated_inputs


@given(evolved_pools(), seeds)
def test_the_chosen_edges_are_the_strongest(evolved: tuple[Setting, CellPools], seed: int) -> None:
    _, pools = evolved
    weights = random_weights(pools, Random(seed))
    cell, _ = derive_cell(pools, weights, Random(0))
    strengths: dict[tuple[int, int], float] = {}
    for position, pool, alphas in zip(pools.positions, pools.edges, weights, strict=True):
        pairs = zip(pool.candidates, softmax(alphas), strict=True)
        strengths[position] = max(p for op, p in pairs if not isinstance(op, Zero))
    for number, node in enumerate(cell.nodes):
        chosen = {(2 + number, edge.input) for edge in node}
        others = [
            value for key, value in strengths.items() if key[0] == 2 + number and key not in chosen
        ]
        assert all(strengths[key] >= value for key in chosen for value in others)


@given(evolved_pools(), seeds)
def test_edge_weights_count_in_the_choice_of_inputs_alone(
    evolved: tuple[Setting, CellPools], seed: int
) -> None:
    """By q = p b: what an edge keeps does not change, which edges stay may."""
    _, pools = evolved
    generator = Random(seed)
    weights = random_weights(pools, generator)
    factors = [generator.random() + 1e-9 for _ in pools.edges]
    plain, change = derive_cell(pools, weights, Random(0))
    assert derive_cell(pools, weights, Random(0), edge_weights=[1.0] * len(factors))[0] == plain
    cell, same = derive_cell(pools, weights, Random(0), edge_weights=factors)
    assert same == change
    strengths: dict[tuple[int, int], float] = {}
    rows = zip(pools.positions, pools.edges, weights, factors, strict=True)
    for position, pool, alphas, factor in rows:
        pairs = zip(pool.candidates, softmax(alphas), strict=True)
        best = max(p for op, p in pairs if not isinstance(op, Zero))
        strengths[position] = best * factor
    for number, node in enumerate(cell.nodes):
        chosen = {(2 + number, edge.input) for edge in node}
        others = [q for key, q in strengths.items() if key[0] == 2 + number and key not in chosen]
        assert all(strengths[key] >= q for key in chosen for q in others)


def test_probabilities_are_those_of_the_whole_pool() -> None:
    # Edge 0 holds two good rivals, edge 1 and 2 one of them clearly ahead.
    pool = EdgePool.initial((Conv(3), Skip()))
    pools = CellPools(2, (pool,) * 5)
    weights = [[0.0, 0.0], [0.0, 0.0], [5.0, 4.9], [1.0, 0.0], [0.0, 2.0]]
    cell, _ = derive_cell(pools, weights, Random(0))
    assert cell.nodes[1] == (Edge(1, Conv(3)), Edge(2, Skip()))


def test_ties_between_edges_are_broken_by_the_generator() -> None:
    pools = CellPools(3, (EdgePool.initial((Conv(3),)),) * 9)
    found = {
        tuple(edge.input for edge in derive_cell(pools, [[0.0]] * 9, Random(seed))[0].nodes[2])
        for seed in range(200)
    }
    assert found == {(a, b) for b in range(4) for a in range(b)}


def test_skips_are_given_up_from_the_least_probable() -> None:
    pool = EdgePool.initial((Skip(), Conv(3), Pool("max")))
    pools = CellPools(2, (pool,) * 5)
    weights = [[3.0, 0, -1], [2.0, 1, 0], [4.0, 0, 0], [5.0, 0, 0], [1.0, 0.9, 0]]
    free, _ = derive_cell(pools, weights, Random(0))
    assert free.operations == (Skip(),) * 4
    bound, _ = derive_cell(pools, weights, Random(0), max_skips=3)
    # The weakest skip, on edge 1 of the first node, gives way to the next best operation there.
    assert bound.nodes[0] == (Edge(0, Skip()), Edge(1, Conv(3)))
    assert bound.nodes[1] == free.nodes[1]
    none, _ = derive_cell(pools, weights, Random(0), max_skips=0)
    assert not any(isinstance(op, Skip) for op in none.operations)


def test_skips_stay_where_the_pools_hold_nothing_else() -> None:
    pools = CellPools(1, (EdgePool.initial((Skip(),)),) * 2)
    cell, _ = derive_cell(pools, [[0.0], [0.0]], Random(0), max_skips=0)
    assert cell.operations == (Skip(), Skip())


def test_an_edge_of_nothing_but_zero_is_refused() -> None:
    pools = CellPools(1, (EdgePool.initial((Zero(),)),) * 2)
    with pytest.raises(ValueError, match="edge 0→2 holds nothing but 'zero'"):
        derive_cell(pools, [[0.0], [0.0]], Random(0))


def test_each_cell_has_its_own_bound_on_skips() -> None:
    pool = EdgePool.initial((Skip(), Conv(3)))
    cell = CellPools(3, (pool,) * 9)
    weights = [[1.0, 0.0]] * 9
    genotype, _ = derive(
        Pools(cell, cell), {"normal": weights, "reduction": weights}, Random(0), {"normal": 2}
    )
    assert sum(isinstance(op, Skip) for op in genotype.normal.operations) == 2
    assert genotype.cell("reduction").operations == (Skip(),) * 6

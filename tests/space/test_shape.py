"""Cells of other shapes than DARTS': values, files, derivation, counting, distance."""

import json
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given

from prnas.io.errors import FormatError
from prnas.space.analysis.counting import count_cells
from prnas.space.analysis.distance import edit_distance
from prnas.space.analysis.sampling import random_genotype
from prnas.space.analysis.statistics import average_statistics
from prnas.space.change import Change
from prnas.space.derivation import derive
from prnas.space.genotype import Cell, Edge, Genotype
from prnas.space.operations import Conv, Operation, Pool, Skip, Zero
from prnas.space.pools import Pools, edge_positions
from prnas.space.setting import Limits
from prnas.space.shape import DARTS, NASBENCH201, CellShape, Role, shape_data, shape_to_data
from tests.support.settings import GENOTYPE201 as GENOTYPE
from tests.support.settings import cell201
from tests.support.strategies import random_weights, seeds, shaped_genotypes, shapes

FIVE: list[Operation] = [Zero(), Skip(), Pool("avg"), Conv(1), Conv(3)]


POSITIONS = [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]
OPERATIONS = (Skip(), Zero(), Conv(3), Conv(1), Pool("avg"), Conv(3))


def test_the_shape_of_nasbench201() -> None:
    assert edge_positions(3, NASBENCH201) == POSITIONS
    assert NASBENCH201.output_states(3, "last") == (3,)
    assert GENOTYPE.roles == ("normal",)
    assert GENOTYPE.normal.operations == OPERATIONS
    assert [state for state, _ in GENOTYPE.normal.edges] == [state for state, _ in POSITIONS]
    assert count_cells(5, 3, NASBENCH201) == 15_625


@given(shaped_genotypes())
def test_genotypes_of_every_shape_go_to_json_and_back(genotype: Genotype) -> None:
    assert Genotype.loads(genotype.dumps()) == genotype
    assert json.loads(genotype.dumps()) == genotype.to_json()
    assert ("shape" in genotype.to_json()["normal"]) == (genotype.shape != DARTS)
    assert list(genotype.to_json())[2:] == list(genotype.roles)


@given(shapes)
def test_shapes_go_to_data_and_back(shape: CellShape) -> None:
    assert CellShape(**shape_to_data(shape)) == shape
    assert shape_data(shape) == shape_to_data(shape)


@given(shapes, seeds)
def test_pools_and_changes_of_every_shape(shape: CellShape, seed: int) -> None:
    generator = Random(seed)
    pools = Pools.initial(3, FIVE, shape)
    changes: dict[Role, Any] = {}
    for role in pools.roles:
        weights = random_weights(pools.cell(role), generator)
        changes[role] = pools.cell(role).evolve(weights, 3, 2, Limits(1, 5), generator)[1]
    change = Change.of(changes)
    assert Change.from_json(change.to_json()) == change
    assert list(change.to_json()) == list(shape.roles) == list(change.roles)
    after = pools.apply(change)
    assert after.shape == shape
    assert Pools.from_json(after.to_json()) == after
    assert ("shape" in after.to_json()["normal"]) == (shape != DARTS)
    assert average_statistics(after, change).num_candidates == 5


@given(shapes, seeds)
def test_the_derived_cell_keeps_the_best_of_the_edges_that_stay(
    shape: CellShape, seed: int
) -> None:
    generator = Random(seed)
    pools = Pools.initial(3, FIVE, shape)
    weights: dict[Role, list[list[float]]] = {
        role: random_weights(pools.cell(role), generator) for role in pools.roles
    }
    genotype, change = derive(pools, weights, generator, output="last")
    assert genotype.shape == shape
    left = pools.apply(change)
    for role in shape.roles:
        cell = genotype.cell(role)
        assert cell.concat == (shape.inputs + 2,)
        edges = dict(zip(pools.cell(role).positions, weights[role], strict=True))
        kept = {(state, edge.input): edge.op for state, edge in cell.edges}
        if shape.reads == "all":
            assert list(kept) == pools.cell(role).positions
            best = {place: FIVE[row.index(max(row))] for place, row in edges.items()}
        else:  # 'zero' is none of the choices
            best = {place: FIVE[row.index(max(row[1:]))] for place, row in edges.items()}
        assert kept.items() <= best.items()
        candidates = [edge.candidates for edge in left.cell(role).edges]
        assert candidates == [(op,) for op in best.values()]


def test_a_bound_on_skips_holds_where_all_edges_stay() -> None:
    pools = Pools.initial(3, [Skip(), Conv(3)], NASBENCH201)
    rows = [[6.0 - number, 0.0] for number in range(6)]
    genotype, _ = derive(pools, {"normal": rows}, Random(0), {"normal": 2}, output="last")
    assert genotype.normal.operations == (Skip(), Skip(), Conv(3), Conv(3), Conv(3), Conv(3))


@given(shapes, seeds)
def test_random_cells_of_every_shape(shape: CellShape, seed: int) -> None:
    genotype = random_genotype(FIVE, Random(seed), 3, shape, "last")
    assert genotype.shape == shape
    assert edit_distance(genotype, genotype) == 0


def test_random_cells_of_nasbench201_are_uniform() -> None:
    generator = Random(0)
    drawn = Counter(
        op
        for _ in range(500)
        for op in random_genotype(FIVE, generator, 3, NASBENCH201, "last").normal.operations
    )
    # Of 3,000 draws each operation gets 600; five standard deviations are 110.
    assert all(abs(drawn[op] - 600) < 110 for op in FIVE)


def test_the_distance_of_cells_that_keep_all_edges_counts_operations() -> None:
    other = Genotype(cell201("skip", "skip", "conv 3x3", "conv 1x1", "avg 3x3", "zero"))
    assert edit_distance(GENOTYPE, other) == edit_distance(other, GENOTYPE) == 2
    darts = random_genotype(FIVE, Random(0))
    with pytest.raises(ValueError, match="different shapes"):
        edit_distance(GENOTYPE, darts)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"roles": ["reduction"]}, "roles must be [normal, reduction] or [normal]"),
        ({"roles": []}, "roles must be [normal, reduction] or [normal]"),
        ({"roles": ["normal", "weird"]}, "normal.shape.roles"),
        ({"inputs": 3}, "inputs must be a whole number from 1 to 2, got 3"),
        ({"reads": "three"}, "normal.shape.reads: must be 'two' or 'all'"),
        ({"network": "mesh"}, "normal.shape.network: must be 'darts' or 'residual'"),
        ({"roles": ["normal", "reduction"]}, "the residual network has no reduction cells"),
        ({"color": 1}, "normal.shape.color: unknown key"),
        ({"inputs": 2}, "nodes[0] must have an edge from every state before it"),
        ({"reads": "two"}, "nodes[2] must be two edges"),
        ({"network": "darts", "roles": ["normal", "reduction"]}, "reduction: is missing"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(fields: dict[str, Any], said: str) -> None:
    data = json.loads(GENOTYPE.dumps())
    data["normal"]["shape"] |= fields
    with pytest.raises(FormatError) as error:
        Genotype.from_json(data)
    assert said in str(error.value)


def test_shapes_by_name() -> None:
    data = json.loads(GENOTYPE.dumps())
    data["normal"]["shape"] = "nasbench201"
    assert Genotype.from_json(data) == GENOTYPE
    data["normal"]["shape"] = "nasbench101"
    with pytest.raises(FormatError, match="Did you mean 'nasbench201'"):
        Genotype.from_json(data)


def test_reductions_that_do_not_belong() -> None:
    with pytest.raises(ValueError, match="there is none in a shape whose only role is normal"):
        Genotype(GENOTYPE.normal, GENOTYPE.normal)
    with pytest.raises(ValueError, match="no reduction: all cells are of one kind"):
        GENOTYPE.cell("reduction")
    one, other = CellShape(reads="all"), CellShape(inputs=1, reads="all")
    pools = [Pools.initial(2, FIVE, shape).normal for shape in (one, other)]
    with pytest.raises(ValueError, match="its shape must be that of the normal cell"):
        Pools(*pools)


def test_zero_is_an_operation_only_where_all_edges_stay() -> None:
    two = CellShape(("normal",), inputs=1)
    nodes = ((Edge(0, Skip()),), (Edge(0, Zero()), Edge(1, Skip())))
    with pytest.raises(ValueError, match="no 'zero' operation"):
        Cell(nodes, (2,), shape=two)
    assert Cell(nodes, (2,), shape=NASBENCH201).operations[1] == Zero()
    with pytest.raises(ValueError, match="must be one edge"):
        Cell(((Edge(0, Skip()), Edge(0, Skip())),), (1,), repeated_inputs=True, shape=two)

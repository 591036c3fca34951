from itertools import permutations
from random import Random

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from prnas.space import zoo
from prnas.space.analysis.distance import cell_distance, edit_distance
from prnas.space.genotype import Cell, Edge, Genotype, Node
from prnas.space.operations import Operation
from tests.support.strategies import cells, genotypes, nonzero_operations, seeds


def shuffled(cell: Cell, generator: Random) -> Cell:
    """The same cell: nodes in another topological order, edges and concatenation shuffled."""
    inputs, order = cell.shape.inputs, list[int]()
    while len(order) < cell.num_nodes:
        ready = [
            number
            for number, node in enumerate(cell.nodes)
            if number not in order
            and all(edge.input < inputs or edge.input - inputs in order for edge in node)
        ]
        order.append(generator.choice(ready))
    new = {state: state for state in range(inputs)}
    new |= {inputs + number: inputs + at for at, number in enumerate(order)}
    nodes: list[Node] = []
    for number in order:
        edges = generator.sample(cell.nodes[number], len(cell.nodes[number]))
        nodes.append(tuple(Edge(new[edge.input], edge.op) for edge in edges))
    concat = [new[state] for state in generator.sample(cell.concat, len(cell.concat))]
    return Cell(tuple(nodes), tuple(concat), cell.repeated_inputs, cell.shape)


def textbook_distance(one: Cell, other: Cell) -> int:
    """All permutations of the nodes of two cells of equal size."""
    best = 10**9
    for order in permutations(range(one.num_nodes)):
        new = {0: 0, 1: 1} | {2 + number: 2 + at for number, at in enumerate(order)}
        edits = len({new[state] for state in one.concat} ^ set(other.concat))
        for number, node in enumerate(one.nodes):
            theirs = other.nodes[order[number]]
            edits += min(
                sum(
                    (new[mine.input] != their.input) + (mine.op != their.op)
                    for mine, their in zip(node, pair, strict=True)
                )
                for pair in permutations(theirs)
            )
        best = min(best, edits)
    return best


@given(cells(), seeds)
def test_no_order_matters(cell: Cell, seed: int) -> None:
    assert cell_distance(cell, shuffled(cell, Random(seed))) == 0


@st.composite
def pairs_of_one_size(draw: st.DrawFn) -> tuple[Cell, Cell]:
    one = draw(cells(max_nodes=4, repeated=True))
    other = draw(cells(min_nodes=one.num_nodes, max_nodes=one.num_nodes, repeated=True))
    return one, other


@given(pairs_of_one_size())
def test_distance_is_the_textbooks(pair: tuple[Cell, Cell]) -> None:
    assert cell_distance(*pair) == textbook_distance(*pair)


@given(genotypes, genotypes)
def test_distance_is_symmetric_and_zero_only_for_equals(one: Genotype, other: Genotype) -> None:
    distance = edit_distance(one, other)
    assert distance == edit_distance(other, one)
    pairs = [(one.normal, other.normal), (one.reduction, other.reduction)]
    same = all(mine.num_nodes == theirs.num_nodes for mine, theirs in pairs) and all(
        textbook_distance(mine, theirs) == 0 for mine, theirs in pairs
    )
    assert (distance == 0) == same


@settings(max_examples=50)
@given(cells(max_nodes=3), cells(max_nodes=3), cells(max_nodes=3))
def test_a_detour_is_never_shorter(one: Cell, via: Cell, other: Cell) -> None:
    assert cell_distance(one, other) <= cell_distance(one, via) + cell_distance(via, other)


@given(cells(), nonzero_operations)
def test_one_edit_is_a_distance_of_one(cell: Cell, op: Operation) -> None:
    first, second = cell.nodes[-1]
    assume(first.op != op)
    edited = Cell(
        (*cell.nodes[:-1], (Edge(first.input, op), second)), cell.concat, cell.repeated_inputs
    )
    assert cell_distance(cell, edited) == textbook_distance(cell, edited) <= 1


def test_between_published_cells() -> None:
    assert edit_distance(zoo.get("darts-v1"), zoo.get("darts-v2")) == 6
    assert edit_distance(zoo.get("nasnet-a"), zoo.get("nasnet-a")) == 0
    # One node more: its two edges and its place in the output, and what else differs.
    assert edit_distance(zoo.get("darts-v1"), zoo.get("nasnet-a")) > 10


def test_many_look_alike_nodes_take_no_time() -> None:
    node = (Edge(0, kept()), Edge(1, kept()))
    cell = Cell((node,) * 40, tuple(range(2, 42)))
    assert cell_distance(cell, cell) == 0


def kept() -> Operation:
    return zoo.get("darts-v1").normal.operations[0]

"""Random values of the search space, for property tests."""

from dataclasses import replace
from random import Random

from hypothesis import strategies as st

from prnas.space.edge_pool import EdgePool
from prnas.space.genotype import Cell, Edge, Genotype, Node
from prnas.space.morphisms import morphs
from prnas.space.operations import OPERATIONS, Conv, Operation, Pool, Zero, from_label
from prnas.space.pools import CellPools
from prnas.space.setting import PAPER_SETTINGS, Limits, Setting
from prnas.space.shape import DARTS, ROLES, CellShape

odd = st.integers(0, 4).map(lambda half: 2 * half + 1)
convs = st.builds(Conv, odd, st.integers(1, 3), st.lists(st.integers(1, 4), max_size=3).map(tuple))
pools = st.builds(Pool, st.sampled_from(["max", "avg"]), st.sampled_from([3, 5]))
EXAMPLES = tuple(from_label(label) for cls in OPERATIONS.values() for label in cls.examples)
_WIDEST = Limits(1, 9, 3, 3, 4)


def _near_examples(cls: type[Operation]) -> st.SearchStrategy[Operation]:
    """The examples of a class, and what morphisms make of them in three steps."""
    operations = {op for op in EXAMPLES if isinstance(op, cls)}
    for _ in range(3):
        operations |= {child for op in operations for _, child in morphs(op, _WIDEST)}
    return st.sampled_from(sorted(operations))


# Every class of operations; those that are not named here by what is near their examples.
_BY_CLASS: dict[type[Operation], st.SearchStrategy[Operation]] = {
    **{cls: _near_examples(cls) for cls in OPERATIONS.values()},
    **{Conv: convs, Pool: pools},
}
operations = st.one_of(*_BY_CLASS.values())
nonzero_operations = st.one_of(*(ops for cls, ops in _BY_CLASS.items() if cls is not Zero))
seeds = st.integers(0, 2**32)
architecture_weights = st.floats(-50, 50) | st.sampled_from([0.0, 1.0])


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    least, most = sorted((draw(odd), draw(odd)))
    bound = st.none() | st.integers(1, 4)
    depth = draw(st.none() | st.integers(0, 3))
    return Limits(least, most, draw(st.integers(1, 3)), depth, draw(bound))


@st.composite
def convs_within(draw: st.DrawFn, bounds: Limits) -> Conv:
    """A convolution inside the limits: a random walk of legal morphisms from the smallest."""
    op: Operation = Conv(bounds.kernel_min)
    for _ in range(draw(st.integers(0, 8))):
        children = morphs(op, bounds)
        if not children:
            break
        op = draw(st.sampled_from([child for _, child in children]))
    assert isinstance(op, Conv)
    return op


@st.composite
def cells(
    draw: st.DrawFn,
    max_nodes: int = 5,
    min_nodes: int = 1,
    repeated: bool | None = None,
    ops: st.SearchStrategy[Operation] = nonzero_operations,
    shape: CellShape = DARTS,
) -> Cell:
    repeated = draw(st.booleans()) if repeated is None and shape.reads == "two" else repeated
    nodes: list[Node] = []
    inner = shape.nodes(draw(st.integers(min_nodes, max_nodes)))
    for state in inner:
        number = shape.num_edges(state)
        sources = list(range(state))
        if shape.reads == "two":
            states = st.integers(0, state - 1)
            unique = not repeated
            sources = draw(st.lists(states, min_size=number, max_size=number, unique=unique))
        nodes.append(tuple(Edge(source, draw(ops)) for source in sources))
    concat = draw(st.lists(st.sampled_from(inner), min_size=1, unique=True))
    return Cell(tuple(nodes), tuple(concat), bool(repeated), shape)


genotypes = st.builds(Genotype, cells(), cells())
# Every shape that there can be.
shapes = st.sampled_from(
    [
        CellShape(roles, inputs, reads, network)
        for roles in (ROLES, ROLES[:1])
        for inputs in (1, 2)
        for reads in ("two", "all")
        for network in ("darts", "residual")
        if network == "darts" or len(roles) == 1
    ]
)


@st.composite
def shaped_genotypes(draw: st.DrawFn, max_nodes: int = 4) -> Genotype:
    """Genotypes of every shape."""
    shape = draw(shapes)
    ops = operations if shape.reads == "all" else nonzero_operations
    cell = cells(max_nodes, ops=ops, shape=shape)
    return Genotype.of({role: draw(cell) for role in shape.roles})


settings_of_the_paper = st.sampled_from(PAPER_SETTINGS)


@st.composite
def evolved_pools(draw: st.DrawFn, max_nodes: int = 4) -> tuple[Setting, CellPools]:
    """Pools of a setting of the paper after some replacements with random weights."""
    setting = draw(settings_of_the_paper)
    if draw(st.booleans()):
        setting = replace(setting, initial_pool=(Zero(), *setting.initial_pool))
    cell = CellPools.initial(draw(st.integers(1, max_nodes)), setting.initial_pool)
    generator = Random(draw(seeds))
    for _ in range(draw(st.integers(0, 4))):
        weights = random_weights(cell, generator)
        cell, _ = cell.evolve(weights, 3, 3, setting.limits, generator)
    return setting, cell


def random_weights(cell: CellPools, generator: Random) -> list[list[float]]:
    return [[generator.gauss(0, 1) for _ in pool.candidates] for pool in cell.edges]


@st.composite
def weighted_pools(draw: st.DrawFn) -> tuple[EdgePool, list[float]]:
    """An edge's pool of any operations, with an architecture weight for each (ties included)."""
    held = draw(st.lists(operations, min_size=1, max_size=8, unique=True))
    size = len(held)
    weights = draw(st.lists(architecture_weights, min_size=size, max_size=size))
    return EdgePool.initial(held), weights

"""The cells of NAS-Bench-201 as indices, as strings and as genotypes, all ways.

A cell has six edges, 0→1, 0→2, 1→2, 0→3, 1→3 and 2→3, each with one of five operations. Its index
is a number of six digits to base five in that order of edges, a digit being an operation's index in
`NAMES`. It orders the table, and is not the index of the published files.
"""

import re
from collections.abc import Sequence

from prnas.io.errors import FormatError, suggestion
from prnas.space.genotype import Cell, Edge, Genotype
from prnas.space.operations import Operation, PlainConv, Pool, Skip, Zero
from prnas.space.shape import NASBENCH201

# The operations by the names that strings have for them.
NAMES: dict[str, Operation] = {
    "none": Zero(),
    "skip_connect": Skip(),
    "nor_conv_1x1": PlainConv(1),
    "nor_conv_3x3": PlainConv(3),
    "avg_pool_3x3": Pool("avg", 3),
}
OPERATIONS: tuple[Operation, ...] = tuple(NAMES.values())
NUM_NODES = 3
NUM_EDGES = 6
NUM_CELLS = len(OPERATIONS) ** NUM_EDGES
FORM = "|op~0|+|op~0|op~1|+|op~0|op~1|op~2|"
_STRING = re.compile(re.escape(FORM).replace("op", "([0-9a-z_]{1,20})"))


def index_of_string(text: str) -> int:
    """The index of the cell that a string describes; a `FormatError` says how it is written."""
    match = _STRING.fullmatch(text.strip()) if len(text) < 1000 else None
    if match is None:
        names = ", ".join(NAMES)
        form = f"must be {FORM} with one of {names} for each op"
        raise FormatError([f"a cell of NAS-Bench-201 {form}, got {text!r:.120}"])
    for name in match.groups():
        if name not in NAMES:
            message = f"no operation of NAS-Bench-201 is called '{name}'."
            raise FormatError([message + suggestion(name, NAMES)])
    return _index([NAMES[name] for name in match.groups()])


def string_of(index: int) -> str:
    """A cell as the papers write it."""
    names = [list(NAMES)[digit] for digit in _digits(index)]
    nodes = (range(number * (number - 1) // 2, number * (number + 1) // 2) for number in (1, 2, 3))
    return "+".join(
        "|" + "".join(f"{names[edge]}~{source}|" for source, edge in enumerate(edges))
        for edges in nodes
    )


def index_of(genotype: Genotype) -> int | None:
    """The index of a genotype; `None` if it is not a cell of NAS-Bench-201."""
    cell = genotype.normal
    if cell.shape != NASBENCH201 or cell.num_nodes != NUM_NODES or cell.concat != (NUM_NODES,):
        return None
    return _index(cell.operations) if set(cell.operations) <= set(OPERATIONS) else None


def genotype_of(index: int) -> Genotype:
    """The genotype of the cell of an index."""
    operations = iter([OPERATIONS[digit] for digit in _digits(index)])
    nodes = tuple(
        tuple(Edge(source, next(operations)) for source in range(state))
        for state in NASBENCH201.nodes(NUM_NODES)
    )
    return Genotype(Cell(nodes, (NUM_NODES,), shape=NASBENCH201))


def _index(operations: Sequence[Operation]) -> int:
    index = 0
    for op in operations:
        index = index * len(OPERATIONS) + OPERATIONS.index(op)
    return index


def _digits(index: int) -> list[int]:
    if type(index) is not int or not 0 <= index < NUM_CELLS:
        raise ValueError(f"index must be from 0 to {NUM_CELLS - 1}, got {index!r:.60}")
    digits: list[int] = []
    for _ in range(NUM_EDGES):
        index, digit = divmod(index, len(OPERATIONS))
        digits.insert(0, digit)
    return digits

"""Cells drawn at random: what any search has to beat."""

from collections.abc import Mapping, Sequence
from math import comb
from random import Random

from prnas.space.genotype import Cell, Edge, Genotype, Node
from prnas.space.operations import Operation, Skip, Zero
from prnas.space.shape import DARTS, CellShape, Output, Role


def random_genotype(
    operations: Sequence[Operation],
    generator: Random,
    num_nodes: int = 4,
    shape: CellShape = DARTS,
    output: Output = "concat",
    max_skips: Mapping[Role, int] | None = None,
) -> Genotype:
    """All cells uniformly: each node's different inputs, and an operation for each.

    'zero' is among the operations where all edges stay. A cell with a bound in `max_skips` has no
    more skips than that, unless there is nothing else.
    """
    zeros = shape.reads == "all"
    choices = [op for op in operations if zeros or not isinstance(op, Zero)]
    if not choices:
        other = "" if zeros else " other than 'zero'"
        raise ValueError(f"a random cell needs at least one operation{other}")

    def cell(most_skips: int | None) -> Cell:
        nodes: list[Node] = []
        sizes = [shape.num_edges(state) for state in shape.nodes(num_nodes)]
        bounded = None
        if most_skips is not None:
            bounded = iter(_with_few_skips(choices, sum(sizes), most_skips, generator))
        for state in shape.nodes(num_nodes):
            inputs = range(state)
            if shape.reads == "two":
                inputs = sorted(generator.sample(inputs, shape.num_edges(state)))
            nodes.append(
                tuple(
                    Edge(source, next(bounded) if bounded else generator.choice(choices))
                    for source in inputs
                )
            )
        return Cell(tuple(nodes), shape.output_states(num_nodes, output), shape=shape)

    bounds = max_skips or {}
    return Genotype.of({role: cell(bounds.get(role)) for role in shape.roles})


def _with_few_skips(
    choices: Sequence[Operation], number: int, most: int, generator: Random
) -> list[Operation]:
    """So many operations, uniformly among all ways that have `most` skips at most."""
    others = [op for op in choices if not isinstance(op, Skip)]
    if not others or len(others) == len(choices):
        return generator.choices(choices, k=number)
    ways = [comb(number, skips) * len(others) ** (number - skips) for skips in range(number + 1)]
    (skips,) = generator.choices(range(number + 1)[: most + 1], ways[: most + 1])
    skipped = set(generator.sample(range(number), skips))
    return [Skip() if place in skipped else generator.choice(others) for place in range(number)]

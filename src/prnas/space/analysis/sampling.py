"""Cells drawn at random: what any search has to beat."""

from collections.abc import Sequence
from random import Random

from prnas.space.genotype import Cell, Edge, Genotype, Node
from prnas.space.operations import Operation, Zero
from prnas.space.shape import DARTS, CellShape, Output


def random_genotype(
    operations: Sequence[Operation],
    generator: Random,
    num_nodes: int = 4,
    shape: CellShape = DARTS,
    output: Output = "concat",
) -> Genotype:
    """All cells uniformly: each node's different inputs, and an operation for each.

    'zero' is among the operations where all edges stay.
    """
    zeros = shape.reads == "all"
    choices = [op for op in operations if zeros or not isinstance(op, Zero)]
    if not choices:
        other = "" if zeros else " other than 'zero'"
        raise ValueError(f"a random cell needs at least one operation{other}")

    def cell() -> Cell:
        nodes: list[Node] = []
        for state in shape.nodes(num_nodes):
            inputs = range(state)
            if shape.reads == "two":
                inputs = sorted(generator.sample(inputs, shape.num_edges(state)))
            nodes.append(tuple(Edge(source, generator.choice(choices)) for source in inputs))
        return Cell(tuple(nodes), shape.output_states(num_nodes, output), shape=shape)

    return Genotype.of({role: cell() for role in shape.roles})

"""Cells drawn at random: what any search has to beat."""

from collections.abc import Sequence
from random import Random

from prnas.space.genotype import NUM_INPUTS, ROLES, Cell, Edge, Genotype
from prnas.space.operations import Operation, Zero


def random_genotype(
    operations: Sequence[Operation], generator: Random, num_nodes: int = 4
) -> Genotype:
    """Both cells uniformly: each node's two different inputs, and an operation for each."""
    choices = [op for op in operations if not isinstance(op, Zero)]
    if not choices:
        raise ValueError("a random cell needs at least one operation other than 'zero'")

    def cell() -> Cell:
        states = range(NUM_INPUTS, NUM_INPUTS + num_nodes)
        nodes: list[tuple[Edge, Edge]] = []
        for state in states:
            inputs = sorted(generator.sample(range(state), 2))
            first, second = (Edge(source, generator.choice(choices)) for source in inputs)
            nodes.append((first, second))
        return Cell(tuple(nodes), tuple(states))

    return Genotype(*(cell() for _ in ROLES))

"""Cells as tables in a terminal."""

from prnas.space.genotype import Genotype
from prnas.terminal.output import show, show_heading, table

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")


def state_name(state: int, inputs: int = 2) -> str:
    """The name of a state as in the pictures: the cells before, then the nodes."""
    return f"c(k-{inputs - state})" if state < inputs else f"B{state - inputs + 1}"


def show_cells(genotype: Genotype) -> None:
    """All kinds of cell, with a row for each node: its operations and what they read."""
    inputs = genotype.shape.inputs
    for role in genotype.roles:
        cell = genotype.cell(role)
        most = max(map(len, cell.nodes))
        rows = [
            [
                state_name(state, inputs),
                *(f"{edge.op.label} of {state_name(edge.input, inputs)}" for edge in node),
                *[""] * (most - len(node)),
                "yes" if state in cell.concat else "",
            ]
            for state, node in enumerate(cell.nodes, inputs)
        ]
        named = [ORDINALS[i] if i < len(ORDINALS) else f"{i + 1}th" for i in range(most)]
        show("")
        show_heading(f"{role} cell")
        show(table(["", *named, "in output"], rows))

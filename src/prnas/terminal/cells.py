"""Cells as tables in a terminal."""

from prnas.space.genotype import NUM_INPUTS, ROLES, Genotype
from prnas.terminal.output import show, show_heading, table


def state_name(state: int) -> str:
    """As in the pictures: the two cells before, then the nodes."""
    return f"c(k-{NUM_INPUTS - state})" if state < NUM_INPUTS else f"B{state - NUM_INPUTS + 1}"


def show_cells(genotype: Genotype) -> None:
    """Both cells, with a row for each node: its two operations and what they read."""
    for role in ROLES:
        cell = genotype.cell(role)
        rows = [
            [
                state_name(state),
                *(f"{edge.op.label} of {state_name(edge.input)}" for edge in node),
                "yes" if state in cell.concat else "",
            ]
            for state, node in enumerate(cell.nodes, NUM_INPUTS)
        ]
        show("")
        show_heading(f"{role} cell")
        show(table(["", "first", "second", "in output"], rows))

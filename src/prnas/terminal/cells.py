"""Cells as tables in a terminal."""

from typing import Any

from prnas.space.genotype import NUM_INPUTS, Cell
from prnas.terminal.output import table


def state_name(state: int) -> str:
    """As in the pictures: the two cells before, then the nodes."""
    return f"c(k-{NUM_INPUTS - state})" if state < NUM_INPUTS else f"B{state - NUM_INPUTS + 1}"


def cell_table(cell: Cell) -> Any:
    """A row for each node: its two operations and what they read."""
    rows = [
        [
            state_name(NUM_INPUTS + number),
            *(f"{edge.op.label} of {state_name(edge.input)}" for edge in node),
            "yes" if NUM_INPUTS + number in cell.concat else "",
        ]
        for number, node in enumerate(cell.nodes)
    ]
    return table(["", "first", "second", "in output"], rows)

"""Representations of genotypes and cells in a notebook.

Pictures are drawn elsewhere, by what knows cells and not the other way round: so the drawing is
looked up by its name, and only when somebody looks.
"""

from collections import Counter
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prnas.space.genotype import Cell, Genotype


def svg_of(value: "Genotype | Cell") -> str:
    return import_module("prnas.drawing.notebook").svg_of(value)


def in_short(cell: "Cell") -> str:
    """'4 conv 3x3, 3 skip, max 3x3': the operations of a cell, the most frequent first."""
    counts = Counter(op.label for op in cell.operations)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(label if number == 1 else f"{number} {label}" for label, number in ordered)

"""`prnas truth`: how good cells of NAS-Bench-201 are, looked up."""

from collections.abc import Sequence

from prnas.io.errors import UserError
from prnas.runs import named
from prnas.space.genotype import Genotype
from prnas.space.nasbench201.cells import FORM, NAMES, genotype_of, index_of_string
from prnas.space.nasbench201.truth import Truth, truth_of
from prnas.terminal.nasbench201 import show_truth, show_truths
from prnas.terminal.output import show_json


def run(cells: Sequence[str], as_json: bool) -> None:
    """Show one cell with all that is known of it, or a line for each of several."""
    if not cells:
        raise UserError(f"name a cell: '{FORM}', a genotype file, or the folder of a search")
    truths = {cell: _truth(cell) for cell in cells}
    if as_json:
        entries = [{"cell": cell, **truth.to_json()} for cell, truth in truths.items()]
        show_json(entries if len(cells) > 1 else entries[0])
    elif len(truths) == 1:
        show_truth(*truths.values())
    else:
        show_truths(truths)


def _truth(cell: str) -> Truth:
    truth = truth_of(_genotype(cell))
    if truth is None:
        labels = ", ".join(op.label for op in NAMES.values())
        raise UserError(
            f"'{cell:.200}' is not a cell of NAS-Bench-201: one kind of cell, three nodes that "
            f"read all before them, the last one as output, and {labels}. As a string: '{FORM}'"
        )
    return truth


def _genotype(cell: str) -> Genotype:
    """The genotype of a NAS-Bench-201 string, or of a name, file or folder as in other commands."""
    if "|" in cell:
        return genotype_of(index_of_string(cell))
    return named.genotype_and_data(cell)[0]

"""`prnas truth`: how good a cell of NAS-Bench-201 is, looked up."""

from prnas.io.errors import UserError
from prnas.runs import named
from prnas.space.genotype import Genotype
from prnas.space.nasbench201.cells import FORM, NAMES, genotype_of, index_of_string
from prnas.space.nasbench201.truth import truth_of
from prnas.terminal.nasbench201 import show_truth
from prnas.terminal.output import show_json


def run(cell: str, as_json: bool) -> None:
    truth = truth_of(_genotype(cell))
    if truth is None:
        labels = ", ".join(op.label for op in NAMES.values())
        raise UserError(
            f"'{cell:.200}' is not a cell of NAS-Bench-201: one kind of cell, three nodes that "
            f"read all before them, the last one as output, and {labels}. As a string: '{FORM}'"
        )
    if as_json:
        show_json(truth.to_json())
    else:
        show_truth(truth)


def _genotype(cell: str) -> Genotype:
    """By its string, or by what other commands take for a genotype."""
    if "|" in cell:
        return genotype_of(index_of_string(cell))
    return named.genotype_and_data(cell)[0]

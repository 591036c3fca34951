"""The end of a search: the cells it found, and where everything lies."""

from prnas.runs.callbacks import SearchResult
from prnas.space.genotype import ROLES
from prnas.terminal.amounts import duration, percent
from prnas.terminal.cells import cell_table
from prnas.terminal.output import show, show_heading
from prnas.terminal.run_end import show_end


def show_found(result: SearchResult) -> None:
    """Tell a person what the search found."""
    for role in ROLES:
        show("")
        show_heading(f"{role} cell")
        show(cell_table(result.genotype.cell(role)))
    accuracy = result.validation_accuracy
    pairs = [
        ("validation", "not measured" if accuracy is None else f"{percent(accuracy)} (supernet)"),
        ("time", duration(result.seconds)),
    ]
    show_end(pairs, result.folder, "prnas retrain {}")

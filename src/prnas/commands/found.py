"""The end of a search: the cells it found, and where everything lies."""

from prnas.commands.amounts import duration, percent
from prnas.commands.ending import show_end
from prnas.commands.output import show, show_heading
from prnas.commands.zoo import cell_table
from prnas.space.genotype import ROLES
from prnas.training.callbacks import SearchResult


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

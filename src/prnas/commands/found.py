"""The end of a search: the cells it found, and where everything lies."""

import shlex
import sys

from prnas.commands.amounts import duration, percent
from prnas.commands.folder_contents import contents
from prnas.commands.output import facts, show, show_heading, show_next
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
    if result.folder is not None:
        pairs.append(("run folder", str(result.folder)))
        pairs += [("", line) for line in contents(result.folder)]
    show("", facts(pairs))
    if result.folder is not None:
        command = f"prnas retrain {shlex.quote(str(result.folder))}"
        # A log is read later, by someone who wants to know this too.
        show_next(command) if sys.stdout.isatty() else show(f"next: {command}")

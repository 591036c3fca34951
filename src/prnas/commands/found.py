"""The end of a search: the cells it found, and where everything lies."""

import shlex
import sys
from pathlib import Path

from prnas.commands.amounts import duration, percent
from prnas.commands.output import facts, show, show_heading, show_next
from prnas.commands.zoo import cell_table
from prnas.space.genotype import ROLES
from prnas.training.callbacks import SearchResult

# What a run folder holds, in the order in which it is told; other files are just named.
CONTENTS = {
    "genotype.json": "the cells",
    "report.html": "the whole search to look at: open it in a browser",
    "config.yaml": "the whole config: runs the search again",
    "records.jsonl": "a record of every epoch, cycle and batch size",
    "environment.json": "versions, device and commands",
    "batch-decisions.jsonl": "every choice of the batch size",
    "checkpoints": "the saved state",
    "tensorboard": "curves, for TensorBoard",
}


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
        pairs += [("", line) for line in _contents(result.folder)]
    show("", facts(pairs))
    if result.folder is not None:
        command = f"prnas retrain {shlex.quote(str(result.folder))}"
        # A log is read later, by someone who wants to know this too.
        show_next(command) if sys.stdout.isatty() else show(f"next: {command}")


def _contents(folder: Path) -> list[str]:
    try:
        names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    except OSError:  # moved or removed meanwhile; the result itself is in memory
        return []
    known = [f"{name}: {what}" for name, what in CONTENTS.items() if name in names]
    return known + sorted(names - set(CONTENTS))

"""Completions of the shell for an argument: names that prnas knows, and files that fit.

Nothing is imported before it is asked for: a shell waits for the answer.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts.completion import CompletionContext

Completer = Callable[["CompletionContext"], list[str]]
_CONFIGS, _GENOTYPES = (".yaml", ".yml"), (".json",)
_RUNS = Path("runs")


def search_recipes(context: "CompletionContext") -> list[str]:
    from prnas.config import recipes

    return [*recipes.names("search"), *_files(context, _CONFIGS)]


def retrain_recipes(context: "CompletionContext") -> list[str]:
    from prnas.config import recipes

    return [*recipes.names("retrain"), *_files(context, _CONFIGS)]


def all_recipes(context: "CompletionContext") -> list[str]:
    from prnas.config import recipes

    return recipes.names()


def cells(context: "CompletionContext") -> list[str]:
    """Published cells, genotype files, and searches that have found theirs."""
    from prnas.runs.names import GENOTYPE

    return [*published_cells(context), *_runs_with(GENOTYPE), *_files(context, _GENOTYPES)]


def published_cells(context: "CompletionContext") -> list[str]:
    from prnas.space import zoo

    return zoo.names()


def methods(context: "CompletionContext") -> list[str]:
    from prnas.config.methods import METHODS

    return [method.name for method in METHODS]


def settings(context: "CompletionContext") -> list[str]:
    from prnas.space.setting import SETTINGS

    return [*SETTINGS, *_files(context, _CONFIGS)]


def images(context: "CompletionContext") -> list[str]:
    from prnas.data.catalog import ABOUT

    return [*ABOUT, "folder:", "npz:"]


def pictures(context: "CompletionContext") -> list[str]:
    """Sets that have a name, folders, and npz files."""
    from prnas.data.catalog import ABOUT

    folders = [str(path) for path in _beside(context) if path.is_dir()]
    return [*ABOUT, *folders, *_files(context, (".npz",))]


def studies(context: "CompletionContext") -> list[str]:
    from prnas.studies.config import ready_studies
    from prnas.studies.names import STUDY

    return [*ready_studies(), *_runs_with(STUDY), *_files(context, _CONFIGS)]


def _runs_with(name: str) -> list[str]:
    """Folders of runs that hold a file of that name."""
    return sorted(str(file.parent) for file in _RUNS.glob(f"*/{name}"))


def _files(context: "CompletionContext", endings: Sequence[str]) -> list[str]:
    return [str(path) for path in _beside(context) if path.suffix.lower() in endings]


def _beside(context: "CompletionContext") -> Iterable[Path]:
    """The visible entries of the folder that was typed so far, sorted."""
    typed = context.incomplete
    folder = Path(typed if typed.endswith("/") else Path(typed).parent)
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))

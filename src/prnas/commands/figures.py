"""`prnas report --figures`: plots and cells as files for a paper."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from prnas.io.atomic import write_output
from prnas.io.errors import UserError, cannot
from prnas.report.page import unique_names
from prnas.report.view import View


def check_figures(folder: Path) -> None:
    """Say what cannot work before anything is written."""
    if importlib.util.find_spec("matplotlib") is None:
        raise UserError("--figures needs matplotlib: pip install 'prnas[figures]'")
    if folder.exists() and not folder.is_dir():
        raise UserError(f"--figures {folder} is a file; a folder is needed")


def folder_names(names: Sequence[str]) -> list[str]:
    """A folder name for each run, all different, also where capitals do not count."""
    plain = [name.replace("/", "-").strip("-") or "run" for name in names]
    return unique_names(plain, lambda name, times: f"{name}-{times - 1}", str.casefold)


def write_figures(views: Sequence[View], folder: Path) -> list[Path]:
    """The figures of each run; of several, each in a folder of its own name."""
    from prnas.report.figures import figures

    written: list[Path] = []
    names = folder_names([view.info.name for view in views])
    with cannot(f"write figures to {folder}"):
        for name, view in zip(names, views, strict=True):
            target = folder if len(views) == 1 else folder / name
            target.mkdir(parents=True, exist_ok=True)
            for file, content in figures(view):
                write_output(target / file, content)
                written.append(target / file)
    return written

"""`prnas report`: a run, or several beside each other, as a page to look at."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from prnas.io.atomic import write_atomically, write_output
from prnas.io.errors import UserError
from prnas.report.group import SEED
from prnas.report.page import FILE, write_page
from prnas.report.read_run import is_run, read_group, read_view, runs_in
from prnas.report.view import View
from prnas.terminal.output import show, show_json, show_next

COMPARISON = Path("comparison.html")
SUFFIXES = (".html", ".htm")


def run(folders: list[Path], out: Path | None, figures: Path | None, as_json: bool) -> None:
    """Write the page, and the figures if asked; nothing is written if anything cannot be read."""
    if not folders:
        raise UserError("name a run's folder, e.g. prnas report runs/RUN; several are compared")
    listed = [path for folder in folders for path in runs_in(folder)]
    found = _once(listed)
    folders = _once(folders)
    path = out or (folders[0] / FILE if len(folders) == 1 else COMPARISON)
    if path.is_dir():
        raise UserError(f"{path} is a folder; --out names a file, such as {path / FILE}")
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(f"--out {path}: a report is a page, so its name must end with .html")
    if figures is not None:
        from prnas.commands.figures import check_figures

        check_figures(figures)
    names = run_names(found) if len(folders) > 1 else [None] * len(found)
    views = [read_view(*one) for one in zip(found, names, strict=True)]
    try:
        group = read_group(folders[0]) if len(folders) == 1 else None
        write = write_output if out is not None else write_atomically
        write_page(path, views, group=group, write=write)
        size = path.stat().st_size
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    drawn = _figures(views, figures) if figures is not None else []
    if as_json:
        show_json(
            {
                "report": str(path),
                "runs": [str(one) for one in found],
                "ended": [view.ended for view in views],
                "figures": [str(one) for one in drawn],
            }
        )
        return
    if len(found) < len(listed):
        show("note: what was named more than once is shown once")
    what = "" if len(views) == 1 else f", {len(views)} runs compared"
    show(f"wrote {path} ({size / 1000:,.0f} kB{what}): open it in a browser")
    if drawn:
        show(f"wrote {len(drawn)} figures (SVG and PDF) to {figures}")
    _show_next(folders, views)


def run_names(paths: Sequence[Path]) -> list[str]:
    """What runs are called beside others: a seed with its group; by path if two are the same."""
    names: list[str] = []
    for path in paths:
        whole = path.resolve()
        seed = SEED.fullmatch(whole.name)
        names.append(f"{whole.parent.name}/{whole.name}" if seed else whole.name)
    return [
        name if names.count(name) == 1 else str(path)
        for name, path in zip(names, paths, strict=True)
    ]


def _once(paths: Sequence[Path]) -> list[Path]:
    """Every folder once, however it was typed."""
    return list({path.resolve(): path for path in reversed(paths)}.values())[::-1]


def _figures(views: Sequence[View], folder: Path) -> list[Path]:
    from prnas.commands.figures import write_figures

    return write_figures(views, folder)


def _show_next(folders: list[Path], views: Sequence[View]) -> None:
    if len(folders) != 1 or not is_run(folders[0]):
        return
    quoted = shlex.quote(str(folders[0]))
    if not views[0].ended:
        show_next(f"prnas watch {quoted}")
    elif not views[0].info.is_training:
        show_next(f"prnas retrain {quoted}")

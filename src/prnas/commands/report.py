"""`prnas report`: a run, or several beside each other, as a page to look at."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from prnas.commands.output import show, show_json, show_next
from prnas.commands.run_files import is_run, read_view, runs_in
from prnas.errors import UserError
from prnas.reporting.page.report import FILE, write_page
from prnas.reporting.page.view import View

COMPARISON = Path("comparison.html")


def run(folders: list[Path], out: Path | None, figures: Path | None, as_json: bool) -> None:
    """Write the page, and the figures if asked; nothing is written if anything cannot be read."""
    if not folders:
        raise UserError("name a run's folder, e.g. prnas report runs/RUN; several are compared")
    found = [path for folder in folders for path in runs_in(folder)]
    path = out or (folders[0] / FILE if len(folders) == 1 else COMPARISON)
    if path.is_dir():
        raise UserError(f"{path} is a folder; --out names a file, such as {path / FILE}")
    if figures is not None:
        from prnas.commands.figures import check_figures

        check_figures(figures)
    views = [read_view(one) for one in found]
    try:
        title = folders[0].resolve().name if len(folders) == 1 else None  # of a group of seeds
        write_page(path, views, title)
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
    what = "" if len(views) == 1 else f", {len(views)} runs compared"
    show(f"wrote {path} ({size / 1000:,.0f} kB{what}): open it in a browser")
    if drawn:
        show(f"wrote {len(drawn)} figures (SVG and PDF) to {figures}")
    _show_next(folders, views)


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

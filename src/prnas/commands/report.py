"""`prnas report`: a run, several compared, or a study as a page; and figures for a paper."""

import importlib.util
import shlex
from collections.abc import Sequence
from pathlib import Path

from prnas.commands.options import ReportOptions
from prnas.io.atomic import write_atomically, write_output
from prnas.io.errors import UserError, cannot
from prnas.io.extras import how_to_install
from prnas.report.html import render
from prnas.report.page import SEED, write_page
from prnas.report.read_run import is_run, read_group, read_view, runs_in
from prnas.report.results_table import results
from prnas.report.view import View
from prnas.runs.names import REPORT
from prnas.studies.folder import is_study
from prnas.terminal.output import show, show_json, show_next

COMPARISON = Path("comparison.html")
SUFFIXES = (".html", ".htm")


def run(folders: Sequence[Path], options: ReportOptions) -> None:
    """Write the page, and the figures for `--figures`; nothing if a run cannot be read."""
    out, figures = options.out, options.figures
    if not folders:
        raise UserError("name a run's folder, e.g. prnas report runs/RUN; several are compared")
    if any(map(is_study, folders)):
        _run_study(folders, options)
        return
    listed = [path for folder in folders for path in runs_in(folder)]
    runs = once(listed)
    folders = once(folders)
    path = out or (folders[0] / REPORT if len(folders) == 1 else COMPARISON)
    _check_page(path)
    if figures is not None:
        _check_figures(figures)
    names = run_names(runs) if len(folders) > 1 else [None] * len(runs)
    views = [read_view(*named) for named in zip(runs, names, strict=True)]
    with cannot(f"write {path}"):
        group = read_group(folders[0]) if len(folders) == 1 else None
        write = write_output if out is not None else write_atomically
        write_page(path, views, group=group, write=write)
        size = path.stat().st_size
    drawn = [] if figures is None else write_figures(views, figures)
    if options.as_json:
        show_json(
            {
                "report": str(path),
                "runs": [str(folder) for folder in runs],
                "ended": [view.ended for view in views],
                "figures": [str(file) for file in drawn],
                "results": results(views),
            }
        )
        return
    if len(runs) < len(listed):
        show("note: runs that were named more than once are shown once")
    what = "" if len(views) == 1 else f", {len(views)} runs compared"
    show(f"wrote {path} ({size / 1000:,.0f} kB{what}): open it in a browser")
    if drawn:
        show(f"wrote {len(drawn)} figures (SVG and PDF) to {figures}")
    if len(folders) == 1 and is_run(folders[0]):
        quoted = shlex.quote(str(folders[0]))
        if not views[0].ended:
            show_next(f"prnas watch {quoted}")
        elif not views[0].info.is_training:
            show_next(f"prnas retrain {quoted}")


def _check_page(path: Path) -> None:
    if path.is_dir():
        raise UserError(f"{path} is a folder; --out names a file, such as {path / REPORT}")
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(f"--out {path}: a report is a page, so its name must end with .html")


def _run_study(folders: Sequence[Path], options: ReportOptions) -> None:
    """The page of a study."""
    folder = next(filter(is_study, folders))
    if len(once(folders)) > 1:
        raise UserError(
            f"{folder} is a study, which has a page of its own: prnas report "
            f"{shlex.quote(str(folder))}"
        )
    if options.figures is not None:
        raise UserError(f"--figures draws runs; {folder} is a study. Name some of its runs")
    path = options.out or folder / REPORT
    _check_page(path)
    from prnas.studies import attempts
    from prnas.studies.folder import read_plan
    from prnas.studies.page import study_data
    from prnas.studies.states import read_states

    plan = read_plan(folder)
    states = read_states(folder, plan)
    problems = attempts.last_problems(folder, plan)
    content = render(study_data(folder, plan, states, problems, page=options.out)).encode()
    with cannot(f"write {path}"):
        write = write_output if options.out is not None else write_atomically
        write(path, content)
    done = {job.path: states[job.number].state == "done" for job in plan.jobs}
    if options.as_json:
        runs = [str(folder / job) for job in done]
        data = {"report": str(path), "runs": runs, "ended": [*done.values()], "figures": []}
        show_json(data)
        return
    size, state = len(content) / 1000, f"{sum(done.values())} of {len(done)} jobs done"
    show(f"wrote {path} ({size:,.0f} kB, {state}): open it in a browser")
    if not all(done.values()):
        show_next(f"prnas watch {shlex.quote(str(folder))}")


def run_names(paths: Sequence[Path]) -> list[str]:
    """Names of runs in a comparison: a seed with its group; paths where names are the same."""
    names: list[str] = []
    for path in paths:
        folder = path.resolve()
        seed = SEED.fullmatch(folder.name)
        names.append(f"{folder.parent.name}/{folder.name}" if seed else folder.name)
    return [
        name if names.count(name) == 1 else str(path)
        for name, path in zip(names, paths, strict=True)
    ]


def once(paths: Sequence[Path]) -> list[Path]:
    """Every folder once, however it was typed."""
    return list({path.resolve(): path for path in reversed(paths)}.values())[::-1]


def _check_figures(folder: Path) -> None:
    """Refuse what cannot work before anything is written."""
    if importlib.util.find_spec("matplotlib") is None:
        raise UserError(f"--figures needs matplotlib: {how_to_install('figures')}")
    if folder.exists() and not folder.is_dir():
        raise UserError(f"--figures {folder} is a file; a folder is needed")


def write_figures(views: Sequence[View], folder: Path) -> list[Path]:
    """The figures of a run, or those that compare several."""
    from prnas.report.figures import comparison_figures, figures

    written: list[Path] = []
    with cannot(f"write figures to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in figures(views[0]) if len(views) == 1 else comparison_figures(views):
            write_output(folder / file, content)
            written.append(folder / file)
    return written

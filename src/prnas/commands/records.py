"""`prnas records`: what runs recorded, as tidy data for other tools."""

from collections.abc import Sequence
from pathlib import Path

from prnas.commands.options import RecordsOptions
from prnas.commands.report import once, run_names
from prnas.io.atomic import write_output
from prnas.io.errors import UserError, cannot
from prnas.report import tidy
from prnas.report.read_run import is_run, read_view, runs_in
from prnas.report.results_table import to_latex
from prnas.studies.folder import is_study, read_plan
from prnas.terminal.output import show


def run(folders: Sequence[Path], options: RecordsOptions) -> None:
    """Print the rows, or write them to `--out`; nothing is written if a run cannot be read."""
    if not folders:
        raise UserError("name a run's folder, e.g. prnas records runs/RUN; several are joined")
    _check(options)
    runs = _named_runs(folders)
    if options.latex:
        text, number = to_latex([read_view(*named) for named in runs]), ""
    else:
        read = tidy.candidate_rows if options.candidates else tidy.epoch_rows
        columns = tidy.CANDIDATE_COLUMNS if options.candidates else tidy.COLUMNS
        rows = [row for named in runs for row in read(*named)]
        lines = tidy.json_lines(rows) if options.as_json else tidy.csv_lines(rows, columns)
        text, number = "".join(lines), f"{len(rows):,} rows of "
    if options.out is None:
        print(text, end="")
        return
    with cannot(f"write {options.out}"):
        write_output(options.out, text.encode())
    show(f"wrote {options.out} ({number}{len(runs)} runs)")


def _check(options: RecordsOptions) -> None:
    formats = {"--csv": options.csv, "--jsonl": options.as_json, "--latex": options.latex}
    chosen = [name for name, wanted in formats.items() if wanted]
    if len(chosen) > 1:
        raise UserError(f"choose one of {' and '.join(chosen)}")
    if options.latex and options.candidates:
        raise UserError("--latex is the table of the results; candidates are CSV or JSON lines")


def _named_runs(folders: Sequence[Path]) -> list[tuple[Path, str]]:
    """The runs of the folders, each once; those of a study are called by row and seed."""
    paths: list[Path] = []
    in_study: dict[Path, str] = {}
    for folder in folders:
        if is_study(folder):
            jobs = [job.path for job in read_plan(folder).jobs if is_run(folder / job.path)]
            if not jobs:
                raise UserError(f"no job of the study {folder} has begun")
            start = "" if len(once(folders)) == 1 else f"{folder.resolve().name}/"
            in_study |= {folder / job: start + job for job in jobs}
            paths += [folder / job for job in jobs]
        else:
            paths += runs_in(folder)
    runs = once(paths)
    return [
        (path, in_study.get(path, name)) for path, name in zip(runs, run_names(runs), strict=True)
    ]

"""`prnas records`: what runs recorded, as tidy data for other tools."""

from collections.abc import Sequence
from pathlib import Path

from prnas.commands.options import RecordsOptions
from prnas.commands.report import once, run_names
from prnas.io.atomic import write_output
from prnas.io.errors import UserError, cannot
from prnas.report import tidy
from prnas.report.read_run import runs_in
from prnas.terminal.output import show


def run(folders: Sequence[Path], options: RecordsOptions) -> None:
    """Print the rows, or write them to `--out`; nothing is written if a run cannot be read."""
    if not folders:
        raise UserError("name a run's folder, e.g. prnas records runs/RUN; several are joined")
    if options.csv and options.as_json:
        raise UserError("choose one of --csv and --json")
    runs = once([path for folder in folders for path in runs_in(folder)])
    read = tidy.candidate_rows if options.candidates else tidy.epoch_rows
    columns = tidy.CANDIDATE_COLUMNS if options.candidates else tidy.COLUMNS
    rows = [row for named in zip(runs, run_names(runs), strict=True) for row in read(*named)]
    lines = tidy.json_lines(rows) if options.as_json else tidy.csv_lines(rows, columns)
    if options.out is None:
        for line in lines:
            print(line, end="")
        return
    with cannot(f"write {options.out}"):
        write_output(options.out, "".join(lines).encode())
    show(f"wrote {options.out} ({len(rows):,} rows of {len(runs)} runs)")

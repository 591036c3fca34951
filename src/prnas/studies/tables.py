"""A study's results as files for other tools: CSV with a line a training, and a LaTeX table."""

import csv
import io

from prnas.report.results_table import decimals_of, latex_text
from prnas.studies.results import METRICS, RowResult, StudyResults

COLUMNS = (
    *("row", "kind", "seed", "training", "training_seed", "test_error", "parameters", "macs"),
    *("training_seconds", "search_seconds", "validation_error", "true_error", "folder"),
)


def to_csv(results: StudyResults) -> str:
    """Long format: a line for each training that is done, or for each search without one."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in results.rows:
        for unit in row.units:
            search = [unit.search_seconds, unit.validation_error, unit.true_error]
            for training in unit.trainings:
                job = training.job
                values = [training.test_error, training.parameters, training.macs]
                start = [row.name, row.kind, unit.seed, job.training, job.seed]
                writer.writerow([*start, *values, training.seconds, *search, job.path])
            if not unit.trainings and (unit.search_seconds is not None or unit.error is not None):
                ending = "" if row.kind == "search" else ".json"
                path = f"{row.name}/seed-{unit.seed}{ending}"
                start = [row.name, row.kind, unit.seed]
                writer.writerow([*start, *[None] * 6, *search, path])
    return text.getvalue()


def to_latex(results: StudyResults) -> str:
    """A tabular for a paper, in the style of booktabs."""
    what = METRICS[results.metric]
    lines = [
        r"\begin{tabular}{lrcccr}",
        r"\toprule",
        rf" & $n$ & {what} (\%) & 95\,\% interval & Rank & Params (M) \\",
        r"\midrule",
        *[_latex_row(row) for row in results.rows],
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _latex_row(row: RowResult) -> str:
    name = latex_text(row.name)
    summary = row.summary
    if summary is None:
        return rf"{name} & 0 & -- & -- & -- & -- \\"
    spread = "" if summary.deviation is None else rf" \pm {100 * summary.deviation:.2f}"
    interval = "--"
    if summary.interval is not None:
        low, high = summary.interval
        interval = f"[{100 * low:.2f}, {100 * high:.2f}]"
    size = row.mean_of("parameters")
    cells = [
        name,
        str(summary.n),
        f"${100 * summary.mean:.2f}{spread}$",
        interval,
        rank_text(row.ranks, "--"),
        "--" if size is None else f"{size / 1e6:.{decimals_of(size / 1e6)}f}",
    ]
    return " & ".join(cells) + r" \\"


def rank_text(ranks: tuple[int, int] | None, dash: str = "-") -> str:
    """'1', or '2-3' for what cannot be told apart from its neighbours."""
    if ranks is None:
        return dash
    best, worst = ranks
    return str(best) if best == worst else f"{best}{dash}{worst}"

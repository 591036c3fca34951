"""The results of runs by config: for `--json`, and as a LaTeX table for a paper."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from prnas.report.comparison import Group, letter_of, same_configs, scores_compare
from prnas.report.page import unique_names
from prnas.report.plain_data import clipped
from prnas.report.view import View

_LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
}
LONGEST_NAME = 60
# Fields of a group's values: what a table calls them, the factor, and the decimals; where none are
# given, three digits that count.
_Column = tuple[str, str, float, int | None]
_SIZES: tuple[_Column, ...] = (
    ("parameters", "Params (M)", 1e-6, None),
    ("macs", "MACs (M)", 1e-6, None),
    ("seconds", "Time (min)", 1 / 60, None),
)


def latex_text(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def config_names(
    views: Sequence[View], groups: Sequence[Sequence[int]], longest: int = LONGEST_NAME
) -> list[str]:
    """The names of configs: those of their folder or single run, else the page's letters."""
    names: list[str] = []
    for i, numbers in enumerate(groups):
        runs = [views[number].info.name for number in numbers]
        folders = {name.rpartition("/")[0] for name in runs}
        name = runs[0] if len(runs) == 1 else "".join(folders) if len(folders) == 1 else ""
        names.append(clipped(name, longest) or f"config {letter_of(i)}")
    return unique_names(names)


def results(views: Sequence[View]) -> list[dict[str, Any]]:
    """A row for each config, searches first: name, runs, mean and deviation over its seeds.

    Accuracies of supernets of several configs are left out: they do not compare.
    """
    table: list[dict[str, Any]] = []
    for kind in ("search", "training"):
        same = [view for view in views if view.kind == kind]
        data = [view.data() for view in same]
        groups = same_configs(same)
        comparable = scores_compare(kind, len(groups))
        for name, numbers in zip(config_names(same, groups), groups, strict=True):
            group = Group(numbers, same, data)
            values = dict(group.values)
            if not comparable:
                values[group.result] = None
            table.append(
                {
                    "kind": kind,
                    "config": name,
                    "runs": [same[number].info.folder for number in numbers],
                    "ended": len(group.ended),
                    **values,
                }
            )
    return table


def to_latex(views: Sequence[View]) -> str:
    """A table in the style of booktabs for each kind of run: mean and deviation over seeds."""
    tables: list[str] = []
    every = results(views)
    for kind in ("search", "training"):
        rows = [row for row in every if row["kind"] == kind]
        if rows:
            view = next(view for view in views if view.kind == kind)
            tables.append(_table(rows, (view.result, f"{view.result_name} (%)", 100.0, 2)))
    return "\n".join(tables)


def _table(rows: Sequence[Mapping[str, Any]], result: _Column) -> str:
    columns = [result, *_SIZES]
    shown = [column for column in columns if any(row[column[0]] for row in rows)]
    lines = [
        rf"\begin{{tabular}}{{lr{'c' * len(shown)}}}",
        r"\toprule",
        " & ".join(["", "$n$", *(latex_text(column[1]) for column in shown)]).lstrip() + r" \\",
        r"\midrule",
    ]
    for row in rows:
        cells = [latex_text(row["config"]), str(row["ended"])]
        cells += [_cell(row[key], factor, decimals) for key, _, factor, decimals in shown]
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def decimals_of(value: float) -> int:
    """Decimals for three significant digits: two for 3.35, four for 0.0643, none for 650."""
    return max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0


def _cell(value: Mapping[str, Any] | None, factor: float, decimals: int | None) -> str:
    """'$2.50 \\pm 0.12$'; a size that all runs of a config share has no deviation."""
    if value is None:
        return "--"
    decimals = decimals_of(factor * value["mean"]) if decimals is None else decimals
    spread = f" \\pm {factor * value['sd']:.{decimals}f}" if value["sd"] else ""
    return f"${factor * value['mean']:.{decimals}f}{spread}$"

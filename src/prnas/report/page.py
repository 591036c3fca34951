"""From runs to a page."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from prnas.io.atomic import write_atomically
from prnas.report.comparison import comparison, same_configs, scores_compare
from prnas.report.group import GroupInfo, several_head
from prnas.report.html import render
from prnas.report.plots import compared_plots, plots_of, sections
from prnas.report.search_view import SearchView
from prnas.report.training_view import TrainingView
from prnas.report.view import RunInfo, View


def view_of(info: RunInfo) -> View:
    return TrainingView(info) if info.is_training else SearchView(info)


def page_data(views: Sequence[View], group: GroupInfo | None = None) -> dict[str, Any]:
    """What the page of one run, or of several, is made from."""
    runs = [view.data() for view in views]
    data: dict[str, Any] = {
        "runs": runs,
        "comparison": None,
        "title": None,
        "group": group.name if group else None,
        "ended": all(view.ended for view in views) if group is None else group.ended(views),
    }
    if len(views) == 1:
        kind = views[0].kind
        return {**data, "curves": {kind: _curves(views, sections(plots_of(views[0]), kind))}}
    names = unique_names([view.info.name for view in views])
    compared = comparison(views, runs, names)
    for run in runs:  # of every edge's pools, and of single matrices, a comparison shows nothing
        run.pop("cycles", None)
        run.pop("confusion", None)
    curves: dict[str, Any] = {}
    for kind in dict.fromkeys(view.kind for view in views):
        named = [(view, name) for view, name in zip(views, names, strict=True) if view.kind == kind]
        same, their_names = zip(*named, strict=True)
        scores = scores_compare(kind, len(same_configs(same)))
        curves[kind] = _curves(same, sections(compared_plots(same, their_names, scores)))
    return {
        **data,
        "names": names,
        "comparison": compared,
        "curves": curves,
        "title": data["group"],
        "head": several_head(views, group),
    }


def _curves(views: Sequence[View], drawn: list[dict[str, Any]]) -> dict[str, Any]:
    """Plots over the same epochs, and the cycles of those if all runs have the same."""
    bands = views[0].bands
    same = all(view.bands == bands for view in views)
    return {
        "done": max(view.epochs.done for view in views),
        "end": max(1, *(max(view.planned, view.epochs.done) for view in views)),
        "cycles": [asdict(band) for band in bands] if same else [],
        "sections": drawn,
    }


def unique_names(
    names: Sequence[str],
    again: Callable[[str, int], str] = lambda name, times: f"{name} ({times})",
    same: Callable[[str], str] = str,
) -> list[str]:
    """A name for each run that no other has; names of which `same` is equal count as one."""
    wanted, used = {same(name) for name in names}, set[str]()
    unique: list[str] = []
    for name in names:
        free, times = name, 1
        # A name that is made up must not be that of a run to come.
        while same(free) in used or (times > 1 and same(free) in wanted):
            times += 1
            free = again(name, times)
        used.add(same(free))
        unique.append(free)
    return unique


def write_page(
    path: Path,
    views: Sequence[View],
    group: GroupInfo | None = None,
    write: Callable[[Path, bytes], None] = write_atomically,
) -> None:
    write(path, render(page_data(views, group)).encode())

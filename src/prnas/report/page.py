"""From runs to a page."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from prnas.io.atomic import write_atomically
from prnas.report.comparison import comparison
from prnas.report.group import GroupInfo, several_head
from prnas.report.html import render
from prnas.report.search_view import SearchView
from prnas.report.training_view import TrainingView
from prnas.report.view import RunInfo, View


def view_of(info: RunInfo) -> View:
    return TrainingView(info) if info.is_training else SearchView(info)


def page_data(
    views: Sequence[View], title: str | None = None, group: GroupInfo | None = None
) -> dict[str, Any]:
    """What the page of one run, or of several under a title, is made from."""
    runs = [view.data() for view in views]
    ended = all(view.ended for view in views) if group is None else group.ended(views)
    title = group.name if group else title
    if len(views) == 1:
        name = group.name if group else None
        return {"runs": runs, "comparison": None, "title": None, "group": name, "ended": ended}
    found = comparison(views, runs)
    for run in runs:
        if "cycles" in run:  # of every edge's pools, a comparison shows nothing
            run["cycles"] = {**run["cycles"], "steps": {}, "now": {}}
    return {
        "runs": runs,
        "comparison": found,
        "title": title,
        "group": group.name if group else None,
        "ended": ended,
        "head": several_head(views, group),
    }


def write_page(
    path: Path,
    views: Sequence[View],
    title: str | None = None,
    group: GroupInfo | None = None,
    *,
    write: Callable[[Path, bytes], None] = write_atomically,
) -> None:
    write(path, render(page_data(views, title, group)).encode())

"""The page of a run, of several, or of a folder of seeds."""

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from typing import Any

from prnas.io.atomic import write_atomically
from prnas.report.comparison import comparison, same_configs, scores_compare
from prnas.report.html import render
from prnas.report.plots import compared_plots, plots_of, sections
from prnas.report.search_view import SearchView
from prnas.report.training_view import TrainingView
from prnas.report.view import Facts, RunInfo, View, original_command

SEED = re.compile(r"seed-([0-9]{1,9})")  # the folder of one of a group's runs
OWN = ("Seed", "Started", "Folder")  # facts of a single run
MOST_SEEDS_SHOWN = 20


def view_of(info: RunInfo) -> View:
    return TrainingView(info) if info.is_training else SearchView(info)


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """A folder of runs seed-0, seed-1, … `seeds`: all that it will have, if it says so."""

    name: str
    folder: str
    seeds: tuple[int, ...] = ()

    def ended(self, views: Sequence[View]) -> bool:
        """Seeds are trained one after the other: those to come count too."""
        done = {PurePath(view.info.folder).name for view in views if view.ended}
        return all(view.ended for view in views) and done >= {f"seed-{seed}" for seed in self.seeds}


def page_data(views: Sequence[View], group: GroupInfo | None = None) -> dict[str, Any]:
    """The data of the page of one run or of several."""
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
    for run in runs:  # a comparison shows neither edges' pools nor single matrices
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
        "head": _several_head(views, group),
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


# --- the head of a page of several runs


def _several_head(views: Sequence[View], group: GroupInfo | None) -> dict[str, Any]:
    """Facts that all the runs have in common, and commands for a group as a whole."""
    first, *others = [view.data()["facts"] for view in views]
    common = [fact for fact in first if all(fact in other for other in others)]
    facts = [(label, text) for label, text in common if label not in OWN]
    if group is None:
        return {"facts": facts, "commands": []}
    if group.seeds:
        facts.insert(0, ("Seeds", _seeds(views, group)))
    facts.append(("Folder", group.folder))
    return {"facts": facts, "commands": _commands(views, group)}


def _seeds(views: Sequence[View], group: GroupInfo) -> str:
    shown = ", ".join(map(str, group.seeds[:MOST_SEEDS_SHOWN]))
    more = ", …" if len(group.seeds) > MOST_SEEDS_SHOWN else ""
    ended = sum(view.ended for view in views)
    state = "all finished" if group.ended(views) else f"{ended} of {len(group.seeds)} finished"
    return f"{shown}{more} ({state})"


def _commands(views: Sequence[View], group: GroupInfo) -> Facts:
    folder, commands = shlex.quote(group.folder), Facts()
    if group.seeds and views[0].info.is_training:
        config = shlex.quote(f"{group.folder.rstrip('/')}/config.yaml")
        repeat = f"prnas retrain {folder} {config} --seeds {len(group.seeds)}"
        commands.append(("Repeat it with all seeds", repeat))
        if not group.ended(views):
            commands.append(("Watch it live", f"prnas watch {folder}"))
            commands.append(("Go on if it stopped", f"prnas retrain --resume {folder}"))
    best = next((view for view in views if view.ended and view.info.is_training), None)
    if best is not None:
        commands.append(("Evaluate a model", f"prnas evaluate {best.info.quoted}"))
        commands.append(("Export a model", f"prnas export {best.info.quoted} -o model.onnx"))
    original = original_command(views[0].info)
    if original:
        commands.append(("Started by", original))
    return commands

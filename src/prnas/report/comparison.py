"""Several runs side by side: groups of the same config, results over seeds, edit distances."""

import json
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from prnas.config.recipes import config_from_data
from prnas.io.errors import FormatError
from prnas.report.confusion import confusion_of
from prnas.report.differences import Rows, differences, science
from prnas.report.plain_data import pick, rounded
from prnas.report.plots import EXACT_PERCENT
from prnas.report.search_view import SearchView
from prnas.report.training_view import TrainingView
from prnas.report.view import View
from prnas.space.analysis.distance import edit_distance
from prnas.space.genotype import Genotype

MOST_NODES = 8  # of cells whose edit distance is told: with more it takes too long
KINDS = (SearchView, TrainingView)
SUPERNETS = (
    "The validation accuracy is that of supernets: it compares searches of one config, not the "
    "networks of different ones. Train what they found (prnas retrain) to compare test errors."
)


def comparison(
    views: Sequence[View], runs: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> dict[str, Any]:
    """Results of each kind of run, in groups of one config, and the distances between genotypes."""
    members: dict[str, list[int]] = {}
    for number, view in enumerate(views):
        members.setdefault(_experiment(view), []).append(number)
    groups = [_group(numbers, views, runs) for numbers in members.values()]
    for kind in KINDS:
        _letter([group for group in groups if group["kind"] == kind.kind])
    return {
        "groups": groups,
        "results": [_results(kind, groups, views, runs) for kind in KINDS],
        "distances": _distances(views),
        "confusions": list(_confusions(groups, views, names)),
    }


def _letter(groups: Sequence[dict[str, Any]]) -> None:
    """Config A, B, … of several; a single one needs no letter."""
    for number, group in enumerate(groups if len(groups) > 1 else ()):
        group["letter"] = chr(ord("A") + number % 26) + (str(number // 26) if number >= 26 else "")


def _results(
    kind: type[View],
    groups: Sequence[dict[str, Any]],
    views: Sequence[View],
    runs: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """A kind of run: what its results are called, what sets its configs apart, and its seeds."""
    groups = [group for group in groups if group["kind"] == kind.kind]
    several = len(groups) > 1
    configs = [_complete(views[group["runs"][0]].info.config) for group in groups]
    rows: Rows = differences(configs, kind is TrainingView) if several else []
    strips = [strip for group in groups if (strip := _strip(group, kind.result, runs))]
    return {
        "kind": kind.kind,
        "key": kind.result,
        "label": kind.result_name,
        "format": EXACT_PERCENT.name,
        "note": SUPERNETS if several and kind is SearchView else "",
        "configs": rows,
        "strips": strips,
        "range": _range(strips),
    }


def _strip(
    group: Mapping[str, Any], result: str, runs: Sequence[Mapping[str, Any]]
) -> dict[str, Any] | None:
    """The result of every seed of a config, if there are several."""
    members = [runs[number] for number in group["runs"]]
    dots = [(run["seed"], run[result]) for run in members if run["ended"]]
    dots = [(seed, value) for seed, value in dots if value is not None]
    if len(dots) < 2:
        return None
    return {"letter": group["letter"], "dots": dots, **group["values"][result]}


def _range(strips: Sequence[Mapping[str, Any]]) -> tuple[float, float] | None:
    """What all strips have room in, so that they can be compared by eye."""
    if not strips:
        return None
    values = [value for strip in strips for _, value in strip["dots"]]
    values += [strip["mean"] + sign * strip["sd"] for strip in strips for sign in (-1, 1)]
    low, high = min(values), max(values)
    room = 0.15 * (high - low or abs(high) or 1.0)
    return low - room, high + room


def _experiment(view: View) -> str:
    """The same text for runs of the same config, whatever their seeds."""
    config = science(_complete(view.info.config))
    return json.dumps([view.kind, config], sort_keys=True, default=str)


def _complete(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """A config with the defaults of all that it leaves out: fields that are newer than its run.

    One that this release cannot read stays as it is.
    """
    try:
        return config_from_data(dict(config)).to_data()
    except FormatError:
        return config


def _group(
    members: Sequence[int], views: Sequence[View], runs: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    ended = [runs[number] for number in members if runs[number]["ended"]]
    view = views[members[0]]
    return {
        "runs": list(members),
        "kind": view.kind,
        "letter": None,
        "ended": len(ended),
        "values": {
            view.result: spread([run[view.result] for run in ended]),
            "seconds": spread([run["seconds"] for run in ended]),
            "parameters": spread([pick(run, "network.parameters") for run in ended]),
            "macs": spread([pick(run, "network.macs") for run in ended]),
        },
    }


def spread(values: Sequence[float | None]) -> dict[str, Any] | None:
    """n, mean and standard deviation (of a sample, so none for a single value)."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return {
        "n": len(known),
        "mean": rounded(fmean(known)),
        "sd": rounded(stdev(known)) if len(known) > 1 else None,
    }


def _confusions(
    groups: Sequence[Mapping[str, Any]], views: Sequence[View], names: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The matrix of each config's seeds together, and whose it is."""
    for group in groups:
        members = ((names[number], views[number]) for number in group["runs"])
        trained = {
            name: view.trained
            for name, view in members
            if isinstance(view, TrainingView) and view.trained
        }
        found = confusion_of(list(trained.values())) if trained else None
        if found is not None and found["counts"] is not None:
            run = next(iter(trained)) if len(trained) == 1 else None
            yield {**found, "letter": group["letter"], "seeds": len(trained), "run": run}


def _distances(views: Sequence[View]) -> list[list[int | None]] | None:
    """Between every two genotypes; none if fewer than two runs have one."""
    found = [view.genotype for view in views]
    if sum(one is not None for one in found) < 2:
        return None
    table: list[list[int | None]] = [[None] * len(found) for _ in found]
    for row, one in enumerate(found):
        for column in range(row + 1):
            other = found[column]
            if one is not None and other is not None and _small(one) and _small(other):
                table[row][column] = table[column][row] = edit_distance(one, other)
    return table


def _small(genotype: Genotype) -> bool:
    return max(genotype.normal.num_nodes, genotype.reduction.num_nodes) <= MOST_NODES

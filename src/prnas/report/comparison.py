"""Several runs side by side: groups of the same config, results over seeds, edit distances."""

import json
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from prnas.config.recipes import config_from_data
from prnas.io.errors import FormatError
from prnas.report.differences import Rows, differences, science
from prnas.report.plain_data import pick, rounded
from prnas.report.view import View
from prnas.space.analysis.distance import edit_distance
from prnas.space.genotype import Genotype

MOST_NODES = 8  # of cells whose edit distance is told: with more it takes too long


def comparison(views: Sequence[View], runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Rows of results, one for each config, and the distances between genotypes."""
    groups: dict[str, list[int]] = {}
    for number, view in enumerate(views):
        groups.setdefault(_experiment(view), []).append(number)
    found = [_group(members, runs) for members in groups.values()]
    return {
        "groups": found,
        "configs": {
            kind: _configs([one for one in found if one["kind"] == kind], views)
            for kind in ("search", "training")
        },
        "distances": _distances(views),
    }


def _configs(groups: Sequence[dict[str, Any]], views: Sequence[View]) -> Rows:
    """What sets the groups apart; nothing if there are not two."""
    if len(groups) < 2:
        return []
    firsts: list[int] = [group["runs"][0] for group in groups]
    configs = [_complete(views[first].info.config) for first in firsts]
    return differences(configs, groups[0]["kind"] == "training")


def _experiment(view: View) -> str:
    """The same text for runs of the same config, whatever their seeds."""
    return json.dumps(
        [type(view).__name__, science(_complete(view.info.config))], sort_keys=True, default=str
    )


def _complete(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """A config with the defaults of all that it leaves out: fields that are newer than its run.

    One that this release cannot read stays as it is.
    """
    try:
        return config_from_data(dict(config)).to_data()
    except FormatError:
        return config


def _group(members: Sequence[int], runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    ended = [runs[number] for number in members if runs[number]["ended"]]
    training = runs[members[0]]["kind"] == "training"
    name = "test_error" if training else "validation"
    return {
        "runs": list(members),
        "kind": runs[members[0]]["kind"],
        "ended": len(ended),
        "result": name,
        "values": {
            name: spread([run[name] for run in ended]),
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

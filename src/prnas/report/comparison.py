"""Several runs side by side: groups of the same config, results over seeds, edit distances."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations_with_replacement
from statistics import fmean, stdev
from typing import Any, cast

from prnas.config.recipes import config_from_data
from prnas.io.errors import FormatError
from prnas.report.plain_data import clipped, pick, rounded, text_at
from prnas.report.plots import EXACT_PERCENT
from prnas.report.search_view import SearchView
from prnas.report.training_view import TrainingView, confusion_of
from prnas.report.view import View, network_phrase
from prnas.space.analysis.distance import edit_distance

MOST_NODES = 8  # edit distances of larger cells are left out: they take too long
KINDS = (SearchView, TrainingView)
SUPERNETS = (
    "Accuracies and losses of these searches are not shown beside each other. They are those of "
    "supernets, which compare searches of one config, not the networks of different ones: a larger "
    "supernet may be better, and what is found in it worse. Each search's own report has them. "
    "Train what they found (prnas retrain) to compare test errors."
)
# What two runs of one experiment may differ in: luck, and where and how they were computed and
# saved. The last two only bound the memory of an evaluation: its result does not depend on them.
NOT_SCIENCE = (
    *("seed", "compute", "checkpoints", "description"),
    *("data.root", "data.storage", "data.workers"),
    *("validation.batch", "testing.batch"),
)
ALWAYS_SHOWN = ("data.name", "space.name", "network.cells", "network.channels")
MOST_KEYS = 40  # keys that differ and are listed
LONGEST_VALUE = 120
Rows = list[tuple[str, list[str]]]  # a label, and a value for each config


class Group:
    """Runs of one config, whatever their seeds: their numbers, views and data for the page."""

    letter: str | None = None  # config A, B, … of several

    def __init__(self, numbers: list[int], views: Sequence[View], runs: Sequence[Any]) -> None:
        self.numbers = numbers
        self.views = [views[number] for number in numbers]
        self.kind, self.result = self.views[0].kind, self.views[0].result
        self.config = _complete(self.views[0].info.config)
        self.ended: list[Any] = [runs[number] for number in numbers if runs[number]["ended"]]
        keys = (self.result, "seconds", "parameters", "macs")
        paths = (self.result, "seconds", "network.parameters", "network.macs")
        values = ([pick(run, path) for run in self.ended] for path in paths)
        self.values = dict(zip(keys, map(spread, values), strict=True))

    def data(self) -> dict[str, Any]:
        return {
            "runs": self.numbers,
            "kind": self.kind,
            "letter": self.letter,
            "ended": len(self.ended),
            "values": self.values,
        }

    def strip(self) -> dict[str, Any] | None:
        """The result of every seed, if there are several."""
        results = [(run["seed"], run[self.result]) for run in self.ended]
        dots = [(seed, value) for seed, value in results if value is not None]
        spread = self.values[self.result]
        return {"letter": self.letter, "dots": dots, **spread} if spread and len(dots) > 1 else None


def comparison(
    views: Sequence[View], runs: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> dict[str, Any]:
    """Results of each kind of run, in groups of one config, and the distances between genotypes."""
    groups = [Group(numbers, views, runs) for numbers in same_configs(views)]
    results = [_results(kind, [g for g in groups if g.kind == kind.kind]) for kind in KINDS]
    return {
        "groups": [group.data() for group in groups],
        "results": results,
        "distances": _distances(views),
        "confusions": list(_confusions(groups, names)),
    }


def same_configs(views: Sequence[View]) -> list[list[int]]:
    """The numbers of the runs of each config, whatever their seeds and where they were computed."""
    members: dict[str, list[int]] = {}
    for number, view in enumerate(views):
        config = science(_complete(view.info.config))
        experiment = json.dumps([view.kind, config], sort_keys=True, default=str)
        members.setdefault(experiment, []).append(number)
    return list(members.values())


def letter_of(number: int) -> str:
    """A to Z, then A1 to Z1 and so on."""
    return chr(ord("A") + number % 26) + (str(number // 26) if number >= 26 else "")


def scores_compare(kind: str, num_configs: int) -> bool:
    """Whether scores of runs of a kind may stand beside each other: of supernets, of one config."""
    return kind != SearchView.kind or num_configs < 2


def _results(kind: type[View], groups: Sequence[Group]) -> dict[str, Any]:
    """A kind of run: what its results are called, what sets its configs apart, and its seeds."""
    several = len(groups) > 1
    for number, group in enumerate(groups if several else ()):
        group.letter = letter_of(number)
    configs = [group.config for group in groups]
    comparable = scores_compare(kind.kind, len(groups))
    strips = [strip for group in groups if comparable and (strip := group.strip())]
    return {
        "kind": kind.kind,
        "key": kind.result,
        "label": kind.result_name,
        "format": EXACT_PERCENT.name,
        "comparable": comparable,
        "note": "" if comparable else SUPERNETS,
        "configs": differences(configs, kind is TrainingView) if several else [],
        "strips": strips,
        "range": _range(strips),
    }


def _range(strips: Sequence[Mapping[str, Any]]) -> tuple[float, float] | None:
    """An axis with room for all strips, so that they can be compared by eye."""
    if not strips:
        return None
    values = [value for strip in strips for _, value in strip["dots"]]
    values += [strip["mean"] + sign * strip["sd"] for strip in strips for sign in (-1, 1)]
    low, high = min(values), max(values)
    room = 0.15 * (high - low or abs(high) or 1.0)
    return low - room, high + room


def _complete(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """A config with the defaults of newer fields; one that cannot be read stays as it is."""
    try:
        return config_from_data(dict(config)).to_data()
    except FormatError:
        return config


def spread(values: Sequence[float | None]) -> dict[str, Any] | None:
    """n, mean and standard deviation (of a sample, so none for a single value)."""
    numbers = [value for value in values if value is not None]
    if not numbers:
        return None
    sd = rounded(stdev(numbers)) if len(numbers) > 1 else None
    return {"n": len(numbers), "mean": rounded(fmean(numbers)), "sd": sd}


def _confusions(groups: Sequence[Group], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The matrix of each config's seeds together, and whose it is."""
    for group in groups:
        trained = {
            names[number]: view.trained
            for number, view in zip(group.numbers, group.views, strict=True)
            if isinstance(view, TrainingView) and view.trained
        }
        confusion = confusion_of(list(trained.values())) if trained else None
        if confusion is not None and confusion["counts"] is not None:
            run = next(iter(trained)) if len(trained) == 1 else None
            yield {**confusion, "letter": group.letter, "seeds": len(trained), "run": run}


def _distances(views: Sequence[View]) -> list[list[int | None]] | None:
    """Edit distances between every two genotypes; none if fewer than two runs have one."""
    genotypes = [(number, view.genotype) for number, view in enumerate(views) if view.genotype]
    if len(genotypes) < 2:
        return None
    table: list[list[int | None]] = [[None] * len(views) for _ in views]
    small = [
        (number, genotype)
        for number, genotype in genotypes
        if max(genotype.cell(role).num_nodes for role in genotype.roles) <= MOST_NODES
        or genotype.shape.reads == "all"
    ]
    for (row, first), (column, second) in combinations_with_replacement(small, 2):
        if first.shape == second.shape:
            table[row][column] = table[column][row] = edit_distance(first, second)
    return table


# --- what sets configs apart, key by key


def differences(configs: Sequence[Mapping[str, Any]], training: bool) -> Rows:
    """Data and setting, then every key whose value differs; what a config lacks is a dash."""

    def texts(path: str) -> list[str]:
        return [text_at(config, path) or "–" for config in configs]

    networks = [network_phrase(config, "{} {}, {} channels") or "–" for config in configs]
    rows: Rows = [("Data", texts("data.name"))]
    if training:
        rows += [("Network", networks), ("Genotype", _genotypes(configs))]
    else:
        rows += [("Setting", texts("space.name")), ("Supernet", networks)]
    flat = [dict(_leaves(science(config))) for config in configs]
    keys = dict.fromkeys(key for leaves in flat for key in leaves if key not in ALWAYS_SHOWN)
    table = [(key, [leaves.get(key, "–") for leaves in flat]) for key in keys]
    differing = [(key, values) for key, values in table if len(set(values)) > 1]
    for key, values in differing[:MOST_KEYS]:
        label, *values = (clipped(text, LONGEST_VALUE) for text in (key, *values))
        rows.append((label, values))
    if len(differing) > MOST_KEYS:
        rows.append((f"and {len(differing) - MOST_KEYS} more keys", ["…"] * len(configs)))
    return rows


def science(config: Mapping[str, Any], section: str = "") -> dict[str, Any]:
    """A config without what two runs of one experiment may differ in."""
    return {
        key: science(cast(Mapping[str, Any], value), f"{section}{key}.")
        if isinstance(value, Mapping)
        else value
        for key, value in config.items()
        if f"{section}{key}" not in NOT_SCIENCE
    }


def _genotypes(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Genotypes are too long to be shown: the same number is the same genotype."""
    genotypes = [pick(config, "genotype") for config in configs]
    texts = [
        None if genotype is None else json.dumps(genotype, sort_keys=True, default=str)
        for genotype in genotypes
    ]
    distinct = dict.fromkeys(text for text in texts if text is not None)
    numbers = {text: number for number, text in enumerate(distinct, 1)}
    return ["–" if text is None else f"genotype {numbers[text]}" for text in texts]


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """(key, value) of all that is no mapping and no list of mappings, but for the genotype."""
    if path == "genotype":
        return
    if isinstance(value, Mapping):
        for key, inner in cast(Mapping[Any, Any], value).items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and any(isinstance(item, dict) for item in cast(list[Any], value)):
        for number, inner in enumerate(cast(list[Any], value), 1):
            yield from _leaves(inner, f"{path}[{number}]")
    else:
        text = json.dumps(value, default=str, ensure_ascii=False)
        yield path, value if isinstance(value, str) else text

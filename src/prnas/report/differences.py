"""What sets the configs of compared runs apart, key by key."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from prnas.report.plain_data import pick, text_at, whole_at

# What two runs of one experiment may differ in: luck, and how they were computed and kept.
NOT_SCIENCE = (
    *("seed", "compute", "checkpoints", "description"),
    *("data.root", "data.storage", "data.workers"),
)
TOLD_ANYWAY = ("data.name", "space.name", "network.cells", "network.channels")
MOST_KEYS = 40  # that are told
LONGEST_VALUE = 120
Rows = list[tuple[str, list[str]]]  # a label, and a value for each config


def differences(configs: Sequence[Mapping[str, Any]], training: bool) -> Rows:
    """Data and setting, then every key whose value differs; what a config lacks is a dash."""
    rows: Rows = [("Data", [text_at(one, "data.name") or "–" for one in configs])]
    if training:
        rows.append(("Network", [_network(one) for one in configs]))
        rows.append(("Genotype", _genotypes(configs)))
    else:
        rows.append(("Setting", [text_at(one, "space.name") or "–" for one in configs]))
        rows.append(("Supernet", [_network(one) for one in configs]))
    flat = [dict(_leaves(science(one))) for one in configs]
    keys = list(dict.fromkeys(key for one in flat for key in one))
    told = 0
    for key in keys:
        values = [one.get(key, "–") for one in flat]
        if key in TOLD_ANYWAY or len(set(values)) < 2:
            continue
        told += 1
        if told <= MOST_KEYS:
            rows.append((_clipped(key), [_clipped(value) for value in values]))
    if told > MOST_KEYS:
        rows.append((f"and {told - MOST_KEYS} keys more", ["…"] * len(configs)))
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


def _network(config: Mapping[str, Any]) -> str:
    cells, channels = whole_at(config, "network.cells"), whole_at(config, "network.channels")
    return f"{cells} cells, {channels} channels" if cells and channels else "–"


def _genotypes(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Genotypes are too long to be told: the same number is the same genotype."""
    texts = [json.dumps(pick(one, "genotype"), sort_keys=True, default=str) for one in configs]
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts), 1)}
    return [f"genotype {numbers[text]}" for text in texts]


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """(key, value) of all that is no mapping and no list of mappings."""
    if isinstance(value, Mapping) and place != "genotype":
        for key, inner in cast(Mapping[Any, Any], value).items():
            yield from _leaves(inner, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list) and any(isinstance(one, dict) for one in cast(list[Any], value)):
        for number, inner in enumerate(cast(list[Any], value), 1):
            yield from _leaves(inner, f"{place}[{number}]")
    elif place != "genotype":
        yield place, value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, default=str, ensure_ascii=False)


def _clipped(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"

"""Dotted overrides from a command line: `schedule.cycles.0.epochs=5` on plain data."""

import copy
from collections.abc import Callable, Sequence
from typing import Any, cast

from prnas.io.errors import FormatError, suggestion
from prnas.io.yaml_files import parse_yaml


def apply_overrides(
    data: dict[str, Any], overrides: Sequence[str], expand: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """A copy of `data` with each `path=value` set; values are YAML.

    Every path must exist already, so that a misspelt one is found. All problems come at once.
    After each override, `expand` writes out in full what a name stands for, so that the next one
    may reach into it.
    """
    result = copy.deepcopy(data)
    problems: list[str] = []
    for override in overrides:
        path, equals, text = override.partition("=")
        if not equals:
            problems.append(f"'{override:.60}': write it as path=value, e.g. seed=1")
            continue
        try:
            _set(result, path.strip(), parse_yaml(text))
            expand(result)
        except FormatError as error:
            problems += [f"'{override:.60}': {problem}" for problem in error.problems]
    if problems:
        raise FormatError(problems)
    return result


def _set(data: dict[str, Any], path: str, value: Any) -> None:
    here: Any = data
    keys = path.split(".")
    for depth, key in enumerate(keys):
        place = ".".join(keys[:depth])
        found = _key(here, key, place)
        if depth == len(keys) - 1:
            here[found] = value
        else:
            here = here[found]


def _key(here: Any, key: str, place: str) -> str | int:
    """`key` as it indexes `here`, or an error that tells what would."""
    where = f" in '{place}'" if place else ""
    if isinstance(here, dict):
        if key not in here:
            raise FormatError([f"no '{key:.60}'{where}." + suggestion(key, cast(Any, here))])
        return key
    if isinstance(here, list):
        size = len(cast(list[Any], here))
        if not key.isdecimal() or len(key) > 9 or int(key) >= size:
            raise FormatError([f"'{place}' has the entries 0 to {size - 1}, not '{key:.60}'"])
        return int(key)
    raise FormatError([f"'{place}' is a single value; it has no '{key:.60}'"])

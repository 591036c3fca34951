"""Dotted overrides from a command line: `schedule.cycles.0.epochs=5` on plain data."""

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from prnas.io.errors import FormatError, suggestion
from prnas.io.yaml_files import parse_yaml


def apply_overrides(
    data: dict[str, Any], overrides: Sequence[str], expand: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """A copy of `data` with each `path=value` set; values are YAML.

    Every path must exist already, so that a misspelt one is refused. One error names all problems.
    After each override, `expand` replaces names in the data by their values, so that the next
    override may reach into them.
    """
    result = copy.deepcopy(data)
    problems: list[str] = []
    for override in as_list(overrides):
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


def as_list(overrides: Sequence[str]) -> list[str]:
    """The overrides; a `TypeError` for a single text, which is a sequence of letters."""
    if isinstance(overrides, str):
        raise TypeError(f'overrides must be a list such as ["seed=1"], got {overrides!r:.200}')
    return list(overrides)


def _set(data: dict[str, Any], path: str, value: Any) -> None:
    section: Any = data
    keys = path.split(".")
    for depth, key in enumerate(keys):
        index = _index(section, key, ".".join(keys[:depth]))
        if depth == len(keys) - 1:
            section[index] = value
        else:
            section = section[index]


def _index(section: Any, key: str, path: str) -> str | int:
    """`key` as it indexes the section at `path`, or an error that names the valid keys."""
    if isinstance(section, dict):
        if key not in section:
            where = f" in '{path}'" if path else ""
            raise FormatError([f"no '{key:.60}'{where}." + suggestion(key, cast(Any, section))])
        return key
    if isinstance(section, list):
        size = len(cast(list[Any], section))
        if not key.isdecimal() or len(key) > 9 or int(key) >= size:
            raise FormatError([f"'{path}' has the entries 0 to {size - 1}, not '{key:.60}'"])
        return int(key)
    raise FormatError([f"'{path}' is a single value; it has no '{key:.60}'"])


def typed_overrides(values: Mapping[str, Any]) -> list[str]:
    """The overrides that options and arguments stand for, of those that were given."""
    # Names are written as JSON, so that YAML makes no number of them.
    return [
        f"{key}={json.dumps(value, ensure_ascii=False)}"
        for key, value in values.items()
        if value is not None
    ]

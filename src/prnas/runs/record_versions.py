"""The versions of `records.jsonl`, and how a record of one is said in the other.

Version 2 begins with a line that says so. Version 1 has no such line; it counts cycles, epochs and
steps from 0, and has other words: a cycle's architecture weights are called `architecture`, as is a
score of an epoch. A run keeps the version that it began with: a file is never of two.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

from prnas.io.errors import FormatError
from prnas.io.reading import parse_json

FORMAT, VERSION, FIRST = "prnas-records", 2, 1
HEADER_TYPE = "header"
_COUNTS = ("cycle", "epoch", "total_epoch", "step")  # fields that count from 0 in version 1
# What version 1 calls otherwise, by the type of a record.
_SECONDS = {"parts": "seconds_for"}
_NEW = {
    "cycle": {"architecture": "architecture_weights"},
    "epoch": _SECONDS,
    "training": _SECONDS,
}
_OLD = {kind: {new: old for old, new in words.items()} for kind, words in _NEW.items()}


def header_line() -> str:
    header = {"type": HEADER_TYPE, "format": FORMAT, "version": VERSION}
    return json.dumps(header, separators=(",", ":")) + "\n"


def version_of(first_line: str) -> tuple[int, bool]:
    """The version of records that begin so, and whether the line is the header, no record."""
    data = parse_json(first_line)
    if not isinstance(data, dict) or cast(dict[str, Any], data).get("type") != HEADER_TYPE:
        return FIRST, False
    header = cast(dict[str, Any], data)
    if header.get("format") != FORMAT:
        raise FormatError([f"format: must be '{FORMAT}', got {header.get('format')!r:.60}"])
    number = header.get("version")
    if type(number) is not int or number != VERSION:
        raise FormatError(
            [
                f"version: {number!r:.60} is not known; this release reads version {VERSION}, and "
                f"version {FIRST}, which has no header"
            ]
        )
    return VERSION, True


def to_first(data: Mapping[str, Any]) -> dict[str, Any]:
    """A record of version 2 as version 1 says it."""
    return _said(data, -1, _OLD.get(data["type"], {}))


def from_first(data: Any) -> Any:
    """A record of version 1 as version 2 says it; what is no record is left as it is."""
    if not isinstance(data, dict):
        return data
    record = cast(dict[str, Any], data)
    words = _NEW.get(str(record.get("type")), {})
    if early := [word for word in words.values() if word in record]:
        raise FormatError([f"{early[0]}: unknown key in records of version {FIRST}"])
    return _said(record, 1, words)


def _said(record: Mapping[str, Any], more: int, words: Mapping[str, str]) -> dict[str, Any]:
    return {
        words.get(key, key): value + more if key in _COUNTS and type(value) is int else value
        for key, value in record.items()
    }

"""Plain data, picked with care: configs and environments come from files that anyone may edit."""

import math
from collections.abc import Mapping
from typing import Any, cast

DIGITS = 5  # significant ones: more than any plot shows, and few bytes


def rounded(value: float | None) -> float | None:
    """Short for the page; what is no finite number is a gap."""
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def pick(data: Any, path: str) -> Any:
    """The value at a dotted path, or `None` where there is none."""
    for key in path.split("."):
        if not isinstance(data, Mapping):
            return None
        data = cast(Mapping[str, Any], data).get(key)
    return data


def text_at(data: Any, path: str) -> str | None:
    """A name or a number at a path, as text."""
    value = pick(data, path)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value)


def whole_at(data: Any, path: str) -> int | None:
    value = pick(data, path)
    return value if type(value) is int else None


def list_at(data: Any, path: str) -> list[Any]:
    value = pick(data, path)
    return cast(list[Any], value) if isinstance(value, list) else []


def clipped(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"

"""What a config key may hold, in words: its type and bounds, read from the field that checks it."""

import json
import types
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

_NUMBERS = {int: "whole number", float: "number"}


def in_words(annotation: Any, metadata: Iterable[Any] = ()) -> str:
    """Such as "whole number, at least 1 and at most 64, or `null`"."""
    kind, constraints = unwrapped(annotation, metadata)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        words = [in_words(each, constraints) for each in arguments if each is not types.NoneType]
        return listed([*words, *(["`null`"] if types.NoneType in arguments else [])], ", or ")
    if origin is Literal:
        return listed([f"`{each}`" for each in arguments], " or ")
    if kind is bool:
        return "`true` or `false`"
    if kind in _NUMBERS:
        bounds = _bounds(constraints)
        return f"{_NUMBERS[kind]}, {bounds}" if bounds else _NUMBERS[kind]
    if kind is str:
        return "text"
    if origin is tuple and arguments[-1] is not Ellipsis:
        return f"list of {len(arguments)}: {in_words(arguments[0])} each"
    if origin in (tuple, list):
        return f"list, of each {in_words(arguments[0])}"
    if origin is dict or kind is dict:
        return "mapping"
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return "section"
    raise TypeError(f"there are no words for {kind!r}")


def unwrapped(annotation: Any, metadata: Iterable[Any] = ()) -> tuple[Any, list[Any]]:
    """A type without `Annotated`, and all that was said beside it."""
    constraints = [*_flat(metadata)]
    while get_origin(annotation) is Annotated:
        annotation, *others = get_args(annotation)
        constraints += _flat(others)
    return annotation, constraints


def _flat(metadata: Iterable[Any]) -> Iterable[Any]:
    for each in metadata:
        yield from each.metadata if isinstance(each, FieldInfo) else [each]


def _bounds(metadata: Iterable[Any]) -> str:
    words: dict[str, str] = {}
    names = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    for each in metadata:
        for name, word in names.items():
            if (bound := getattr(each, name, None)) is not None:
                words[word] = f"{word} {number(bound)}"
    return " and ".join(words[word] for word in names.values() if word in words)


def number(value: float) -> str:
    """With thousands apart; large powers as such."""
    for base, least in ((2, 40), (10, 9)):
        for power in range(least, 70):
            if value == base**power:
                return f"{base}^{power}"
    return f"{int(value):,}" if value == int(value) else f"{value}"


def default(value: Any) -> str:
    """As a config file has it."""
    if value == "":
        return "empty"
    if isinstance(value, Mapping) and not value:
        return "none"
    if isinstance(value, str):
        return f"`{value}`"
    return f"`{json.dumps(value)}`"


def listed(words: list[str], last: str) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + last + words[-1]

"""Reading JSON and plain data: all problems in one error, each with its key."""

import json
import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NoReturn, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from prnas.io.errors import FormatError, suggestion

T = TypeVar("T")
Loc = tuple[int | str, ...]
MAX_CHARACTERS = 4_000_000
MAX_DIGITS = 100  # Digits of a number.
MAX_PROBLEMS = 50  # Number of problems that are listed.
_KINDS: dict[type[object], str] = {
    **{type(None): "null", bool: "a boolean", str: "a string"},
    **{int: "a number", float: "a number"},
}


def parse_json(text: str) -> Any:
    """JSON, without the liberties of Python's reader: no NaN, no key given twice."""
    if len(text) > MAX_CHARACTERS:
        raise FormatError([f"the text has more than {MAX_CHARACTERS:,} characters"])

    def no_constant(name: str) -> NoReturn:
        raise FormatError([f"{name} is not a JSON number"])

    def no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for name, value in pairs:
            if name in fields:
                raise FormatError([f"the key '{name:.60}' is given twice in one object"])
            fields[name] = value
        return fields

    def bounded(digits: str) -> int:
        if len(digits) > MAX_DIGITS:
            raise FormatError(["a number is too large"])
        return int(digits)

    try:
        return json.loads(
            text, parse_constant=no_constant, parse_int=bounded, object_pairs_hook=no_repeats
        )
    except json.JSONDecodeError as error:
        position = f"line {error.lineno}, column {error.colno}"
        raise FormatError([f"{position}: not valid JSON ({error.msg})"]) from None
    except RecursionError:
        raise FormatError(["nested too deeply"]) from None


def check_header(data: Any, format_name: str, version: int) -> dict[str, Any]:
    """The object without its `format` and `version`, after checking that they are ours."""
    if not isinstance(data, dict):
        kind = _KINDS.get(type(cast(object, data)), "a list")
        raise FormatError([f"the file must hold an object, not {kind}"])
    fields = dict(cast(dict[str, Any], data))
    name, number = fields.pop("format", None), fields.pop("version", None)
    if name != format_name:
        raise FormatError([f"format: must be '{format_name}', got {name!r:.60}"])
    if type(number) is not int or number != version:
        raise FormatError(
            [f"version: {number!r:.60} is not known; this release reads version {version}"]
        )
    return fields


def validated(adapter: TypeAdapter[T], data: Any, what: str) -> T:
    """`data` as the adapter's type; a `FormatError` names everything that is wrong with it."""
    try:
        if problems := list(islice(_not_plain(data, ""), MAX_PROBLEMS + 1)):
            raise FormatError(_few(problems))
        return adapter.validate_json(json.dumps(data))
    except RecursionError:
        raise FormatError([f"{what}: nested too deeply"]) from None
    except ValidationError as error:
        raise FormatError(explain(error, data, adapter.json_schema())) from None


def _not_plain(data: object, path: str) -> Iterator[str]:
    """Messages about data that JSON cannot hold: other types, keys that are no strings, NaN, …"""
    where = f"{path.removeprefix('.')}: " if path else ""
    match data:
        case dict():
            for key, value in cast(dict[object, object], data).items():
                if isinstance(key, str):
                    yield from _not_plain(key, f"{path}.{key!r:.60}")
                    yield from _not_plain(value, f"{path}.{key:.60}")
                else:
                    yield f"{where}keys must be strings, got {key!r:.60}"
        case list():
            for number, value in enumerate(cast(list[object], data)):
                yield from _not_plain(value, f"{path}[{number}]")
        case float():
            if not math.isfinite(data):
                yield f"{where}must be a finite number, got {data}"
        case str():
            if any("\ud800" <= character <= "\udfff" for character in data):
                yield f"{where}holds half a character (a lone surrogate)"
        case None | bool() | int():
            pass
        case _:
            yield f"{where}must be plain data, got {type(data).__name__} {data!s:.60}"


def explain(error: ValidationError, data: Any, schema: dict[str, Any]) -> list[str]:
    """One line for each problem: its path in the data, what is wrong, and what is valid."""
    lines: list[str] = []
    for problem in error.errors(include_url=False)[: MAX_PROBLEMS + 1]:
        kind, loc = problem["type"], problem["loc"]
        path = _path(loc, data, keep_last=kind in ("missing", "missing_argument"))
        line = (f"{path}: " if path else "") + _message(kind, loc, problem, schema)
        if line not in lines:
            lines.append(line)
    return _few(lines)


def _few(problems: list[str]) -> list[str]:
    """The first problems; a file may have hundreds of thousands."""
    more = len(problems) > MAX_PROBLEMS
    return [*problems[:MAX_PROBLEMS], "and more"] if more else problems


def _message(kind: str, loc: Loc, problem: Mapping[str, Any], schema: dict[str, Any]) -> str:
    context: Mapping[str, Any] = problem.get("ctx", {})
    match kind:
        case "extra_forbidden" | "unexpected_keyword_argument":
            return "unknown key." + suggestion(str(loc[-1]), _keys_at(loc[:-1], schema))
        case "missing" | "missing_argument":
            return "is missing"
        case "union_tag_invalid":
            tags = [tag.strip(" '") for tag in str(context["expected_tags"]).split(",")]
            tag = str(context["tag"])
            return f"unknown type {tag!r:.60}." + suggestion(tag, tags)
        case "union_tag_not_found":
            return "must have a 'type'"
        case "value_error" | "assertion_error":
            return str(context["error"])
        case "json_invalid":
            return f"not readable ({context['error']})"
        case _:
            message = str(problem["msg"]).replace("Input should be", "must be")
            return f"{message[0].lower()}{message[1:]}, got {problem['input']!r:.60}"


def _path(loc: Loc, data: Any, keep_last: bool) -> str:
    """`normal.nodes[0][1].op.kernel`. Names of union members, which are no keys, are left out."""
    text = ""
    value: Any = data
    type_named = False
    for position, key in enumerate(loc):
        fields = cast(dict[str, Any], value) if isinstance(value, dict) else {}
        # An object of several types has its type's name first, which may be a key's name too.
        type_named = not type_named and key == fields.get("type")
        if type_named:
            continue
        if isinstance(key, int):
            text += f"[{key}]"
            items = cast(list[Any], value) if isinstance(value, list) else []
            value = items[key] if key < len(items) else None
        elif key in fields or (keep_last and position == len(loc) - 1):
            text += f".{key:.60}"
            value = fields.get(key)
    return text.removeprefix(".")


def _keys_at(loc: Loc, schema: dict[str, Any]) -> set[str]:
    """The keys that the JSON schema allows at a path."""
    options = _alternatives(schema, schema)
    for key in loc:
        step: list[dict[str, Any]] = []
        for option in options:
            inner = option.get("items") if isinstance(key, int) else None
            inner = inner or option.get("properties", {}).get(key)
            inner = inner or (option.get("prefixItems") or [None])[0]
            if isinstance(inner, dict):
                step += _alternatives(cast(dict[str, Any], inner), schema)
        members = [option for option in options if _type_of(option) == key]
        options = step or members or options
    return {name for option in options for name in option.get("properties", {})}


def _type_of(schema: dict[str, Any]) -> object:
    return schema.get("properties", {}).get("type", {}).get("const")


def _alternatives(section: dict[str, Any], schema: dict[str, Any]) -> list[dict[str, Any]]:
    if "$ref" in section:
        return _alternatives(schema["$defs"][section["$ref"].rsplit("/", 1)[-1]], schema)
    options = section.get("anyOf") or section.get("oneOf")
    if options:
        return [inner for option in options for inner in _alternatives(option, schema)]
    return [section]

"""Values as Python code, laid out as formatters do: on one line, or one element a line."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WIDTH = 88  # the default of ruff and Black
INDENT = 4


@dataclass(frozen=True, slots=True)
class Word:
    """A name, as it stands."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """`function(first, **values)`."""

    function: str
    first: Word
    values: Mapping[str, "Value"]


Value = (
    str | float | Sequence["Value"] | Mapping[int, "Value"] | Mapping[str, "Value"] | Word | Call
)


def quoted(text: str) -> str:
    """A string literal. Whatever is not printable is escaped: a name cannot end it, nor hide."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    return quote + "".join(_escaped(character, quote) for character in text) + quote


def assigned(name: str, value: Value, comment: str = "") -> str:
    """`name = value`; a comment goes above it unless both fit on a line."""
    before = f"{name} = "
    code = before + _code(value, 0, len(before))
    if not comment:
        return code
    line = f"{code}  # {comment}"
    return line if "\n" not in code and _width(line) <= WIDTH else f"# {comment}\n{code}"


def filled(name: str, texts: Sequence[str]) -> str:
    """A long list of strings, as many a line as fit; formatters are told to leave it."""
    lines = [" " * INDENT]
    for text in map(quoted, texts):
        if lines[-1].strip() and _width(lines[-1]) + _width(text) + 1 > WIDTH:
            lines.append(" " * INDENT)
        lines[-1] += f"{text}, "
    body = "\n".join(line.rstrip() for line in lines)
    return f"# fmt: off\n{name} = [\n{body}\n]\n# fmt: on"


def _escaped(character: str, quote: str) -> str:
    if character in (quote, "\\"):
        return "\\" + character
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def _width(text: str) -> int:
    """Columns, of which East Asian characters take two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _flat(value: Value) -> str:
    before, elements, after = _elements(value)
    return before + ", ".join(key + _flat(element) for key, element in elements) + after


def _elements(value: Value) -> tuple[str, list[tuple[str, Value]], str]:
    """The text that opens a value, its elements with the text before each, and the closing text."""
    match value:
        case Word():
            return value.text, [], ""
        case str():
            return quoted(value), [], ""
        case int() | float():
            return repr(value).replace("e+", "e"), [], ""
        case Call():
            named = [(f"{name}=", element) for name, element in value.values.items()]
            return f"{value.function}(", [("", value.first), *named], ")"
        case Mapping():
            return "{", [(f"{_flat(key)}: ", element) for key, element in value.items()], "}"
        case tuple():
            assert len(value) > 1, "a tuple of one would need a comma"
            return "(", [("", element) for element in value], ")"
        case _:
            return "[", [("", element) for element in value], "]"


def _code(value: Value, indent: int, used: int) -> str:
    """The code of a value whose first line has `used` columns of other things."""
    line = _flat(value)
    before, elements, after = _elements(value)
    if not elements or used + _width(line) <= WIDTH:
        return line
    inner, outer = " " * (indent + INDENT), " " * indent
    arguments = ", ".join(key + _flat(element) for key, element in elements)
    if isinstance(value, Call) and len(inner) + _width(arguments) <= WIDTH:
        return f"{before}\n{inner}{arguments}\n{outer}{after}"
    lines = [
        f"{inner}{key}{_code(element, indent + INDENT, len(inner) + _width(key) + 1)},\n"
        for key, element in elements
    ]
    return f"{before}\n{''.join(lines)}{outer}{after}"

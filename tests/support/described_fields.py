"""The fields that docs/files.md describes, compared with those of real files."""

import re
from collections.abc import Iterator
from typing import Any

from tests.support.fences import ROOT

PAGE = ROOT / "docs" / "files.md"


def described(heading: str) -> set[str]:
    """The fields in the table below a heading."""
    text = PAGE.read_text(encoding="utf-8")
    _, _, rest = text.partition(f" {heading}\n")
    section = re.split(r"^##", rest, maxsplit=1, flags=re.MULTILINE)[0]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([\w.]+)`", cell)}


def fields_of(data: Any, names: set[str], path: str = "") -> Iterator[str]:
    """The fields of a file's content, as deep as the page goes."""
    if isinstance(data, list):
        for each in data:
            yield from fields_of(each, names, path)
    if isinstance(data, dict):
        for name, value in data.items():
            yield f"{path}{name}"
            if any(field.startswith(f"{path}{name}.") for field in names):
                yield from fields_of(value, names, f"{path}{name}.")


def assert_described(heading: str, data: Any, optional: frozenset[str] = frozenset()) -> None:
    """The page names every field of the data, and no other but those that are optional."""
    names = described(heading)
    assert names, f"docs/files.md has no table for {heading}"
    fields = set(fields_of(data, names))
    assert fields <= names, f"not in docs/files.md: {sorted(fields - names)}"
    assert names - optional <= fields, f"not in the file: {sorted(names - optional - fields)}"

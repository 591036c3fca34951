"""The meaning of a class's fields: the comments that begin with `#:`, as Sphinx reads them too."""

import ast
import inspect
import re
from functools import cache
from typing import Any

_COMMENT = re.compile(r"#:\s*(.*)$")


@cache
def meanings(kind: type[Any]) -> dict[str, str]:
    """By name, those of inherited fields included; a field without such a comment has none."""
    comments: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if each.__module__.startswith("prnas."):
            comments |= _own(each)
    return comments


def _own(kind: type[Any]) -> dict[str, str]:
    lines = inspect.getsource(inspect.getmodule(kind)).splitlines()  # pyright: ignore
    body = next(
        node.body
        for node in ast.walk(ast.parse("\n".join(lines)))
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__
    )
    comments: dict[str, str] = {}
    for node in body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            text = _above(lines, node.lineno) or _behind(lines, node.end_lineno or node.lineno)
            if text:
                comments[node.target.id] = text
    return comments


def _above(lines: list[str], number: int) -> str:
    """The comment that ends above this line, of as many lines as it has."""
    parts: list[str] = []
    while number > 1 and (match := _COMMENT.fullmatch(lines[number - 2].strip())):
        parts.insert(0, match[1])
        number -= 1
    return " ".join(parts)


def _behind(lines: list[str], number: int) -> str:
    match = _COMMENT.search(lines[number - 1])
    return match[1] if match else ""


def summary(kind: type[Any]) -> str:
    """The docstring of a class as paragraphs."""
    paragraphs = (inspect.getdoc(kind) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)

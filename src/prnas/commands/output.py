"""The terminal: aligned and coloured for people, plain and unwrapped for pipes."""

import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

PLAIN_WIDTH = 10_000  # a pipe has no width: let no line wrap


def console() -> Console:
    """Standard output; without a terminal, without colours and without wrapping."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, width=PLAIN_WIDTH, color_system=None)


def table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()
) -> Table:
    """A table; `right` names the columns of numbers."""
    people = sys.stdout.isatty()
    made = Table(
        box=SIMPLE_HEAD if people else None,
        pad_edge=False,
        padding=(0, 2 if not people else 1, 0, 0 if not people else 1),
        header_style="bold",
    )
    for place, heading in enumerate(headings):
        style = "cyan" if place == 0 else ""
        made.add_column(
            heading, justify="right" if place in right else "left", style=style, no_wrap=place == 0
        )
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    return made


def facts(pairs: Sequence[tuple[str, str]]) -> Table:
    """Names and values, one pair a line."""
    made = Table.grid(padding=(0, 2, 0, 0))
    made.add_column(style="cyan", no_wrap=True)
    made.add_column()
    for name, value in pairs:
        made.add_row(Text(name), Text(value))
    return made


def show(*parts: Any) -> None:
    """Print to standard output; strings are taken as they are, without markup."""
    out = console()
    for part in parts:
        _print(out, Text(part) if isinstance(part, str) else part)


def show_heading(text: str) -> None:
    _print(console(), Text(text, style="bold"))


def _print(out: Console, part: Any) -> None:
    if sys.stdout.isatty():
        out.print(part)
        return
    with out.capture() as captured:
        out.print(part)
    # rich fills every cell of a table with blanks, which a script would have to strip.
    for line in captured.get().splitlines():
        print(line.rstrip())


def show_next(*commands: str) -> None:
    """What to type next; left out in a pipe, where no one reads it."""
    if sys.stdout.isatty():
        out = console()
        for command in commands:
            out.print(Text.assemble(("next: ", "dim"), (command, "green")))


def show_json(data: Any) -> None:
    print(json.dumps(data, indent=1, ensure_ascii=False))

"""Output: aligned and coloured in a terminal, plain and unwrapped in a pipe."""

import json
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

PROSE_WIDTH = 96
PLAIN_WIDTH = 10_000  # A pipe has no width: no line is wrapped.


def console() -> Console:
    """Standard output; without a terminal, without colours and without wrapping."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, width=PLAIN_WIDTH, color_system=None)


def table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()
) -> Table:
    """A table; `right` names the columns of numbers."""
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for index, heading in enumerate(headings):
        grid.add_column(
            heading,
            justify="right" if index in right else "left",
            style="cyan" if index == 0 else "",
            overflow="fold",  # A narrow terminal breaks values, and never drops any.
        )
    for row in rows:
        grid.add_row(*(Text(visible(cell)) for cell in row))
    return grid


def facts(pairs: Sequence[tuple[str, str]]) -> Table:
    """Names and values, one pair a line."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column()
    for name, value in pairs:
        grid.add_row(Text(name), Text(visible(value)))
    return grid


def show(*items: Any) -> None:
    """Print to standard output; strings are taken as they are, without markup."""
    out = console()
    for item in items:
        text = Text(visible(item)) if isinstance(item, str) else item
        if sys.stdout.isatty():
            out.print(text)
            continue
        with out.capture() as captured:
            out.print(text)
        # rich fills every cell of a table with blanks, which a script would have to strip.
        for line in captured.get().splitlines():
            print(line.rstrip())


def show_prose(text: str, indent: str = "") -> None:
    """A paragraph, wrapped to the terminal; `indent` is for all lines but the first."""
    show(textwrap.fill(text, min(console().width, PROSE_WIDTH), subsequent_indent=indent))


def reason_lines(reasons: Iterable[tuple[str, str]]) -> list[str]:
    """Lines on what was chosen by the images, and why."""
    return [f"{what:<9} {why}" for what, why in reasons]


def visible(text: str) -> str:
    """`text` with control characters escaped, so that a file's name cannot control the terminal."""
    return "".join(
        character if character.isprintable() or character == "\n" else repr(character)[1:-1]
        for character in text
    )


def show_heading(text: str) -> None:
    show(Text(visible(text), style="bold"))


def show_next(*commands: str, logged: bool = False) -> None:
    """Show the commands to type next; in a pipe, only if they are to be `logged`."""
    if sys.stdout.isatty() or logged:
        for command in commands:
            show(Text.assemble(("next: ", "dim"), (visible(command), "green")))


def note(text: str) -> None:
    """A note on standard error, where no script reads it."""
    print(f"note: {visible(text)}", file=sys.stderr, flush=True)


def show_json(data: Any) -> None:
    print(json.dumps(data, indent=1, ensure_ascii=False))

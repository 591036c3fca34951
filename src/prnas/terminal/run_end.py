"""The end of any run: its figures, where everything lies, and what to do next."""

import shlex
from pathlib import Path

from prnas.terminal.folder_contents import contents
from prnas.terminal.output import facts, show, show_next


def show_end(pairs: list[tuple[str, str]], folder: Path | None, *commands: str) -> None:
    """`commands` are those to type next, with {} for the folder."""
    if folder is None:
        show("", facts(pairs))
        return
    inside = [("", line) for line in contents(folder)]
    show("", facts([*pairs, ("run folder", str(folder)), *inside]))
    # A log is read later, by someone who wants to know this too.
    quoted = shlex.quote(str(folder))
    show_next(*(command.format(quoted) for command in commands), logged=True)

"""A page for each command, from what the command line itself says of it."""

import re
from dataclasses import dataclass
from functools import cache
from typing import cast

from cyclopts import App

from prnas.cli import app
from prnas.cli.commands import COMMANDS

# As `App.generate_docs` writes an argument or an option.
_ENTRY = re.compile(r"^\* `([^`]+)`: (.*(?:\n    .*)*)", re.MULTILINE)
_NOTE = re.compile(r"\s*(?:\*\*\[(required)\]\*\*|\*\[(choices|default): ([^\]]*)\]\*)")
GROUPS = {
    "From pictures to a model": ("fit",),
    "Search and train": ("search", "retrain", "study", "latency"),
    "Use a trained model": ("evaluate", "predict", "export"),
    "Look at runs": ("report", "watch", "records", "draw"),
    "What there is": ("recipes", "config", "methods", "data", "space", "zoo", "truth"),
    "Set up": ("doctor", "completion"),
}
EXIT_CODES = """\
| exit code | meaning |
|---|---|
| 0 | Done. |
| 1 | A study in which jobs were given up; the rest is done. |
| 2 | A mistake that one message on standard error names: a wrong option, file or value. |
| 75 | `prnas study --job`: the job cannot run yet, since its search is not done. |
| 130, 143 | Stopped by Ctrl-C or SIGTERM; the state is saved. |
"""


@dataclass(frozen=True)
class Entry:
    """An argument or an option: as it is typed, what it means, and notes on its value."""

    typed: str
    meaning: str
    required: bool
    choices: str
    default: str


@cache
def entries() -> dict[str, list[Entry]]:
    """The arguments and options of each command, in their order."""
    _, *texts = app.generate_docs(output_format="markdown").split("\n## prnas ")
    return {
        text.split("\n", 1)[0]: [_entry(typed, words) for typed, words in _ENTRY.findall(text)]
        for text in texts
    }


def _entry(typed: str, words: str) -> Entry:
    notes = _NOTE.findall(words)
    values = {kind: value for _, kind, value in notes if kind}
    meaning = " ".join(_NOTE.sub("", words).split())
    required = any(note for note, _, _ in notes)
    return Entry(typed, meaning, required, values.get("choices", ""), values.get("default", ""))


def pages() -> dict[str, str]:
    """The pages by name: one for each command, and their list."""
    names = {command.__name__ for command in COMMANDS}
    groups = {**GROUPS, "More": tuple(sorted(names - {n for g in GROUPS.values() for n in g}))}
    groups = {title: [name for name in group if name in names] for title, group in groups.items()}
    written = {f"commands/{name}": _page(name, own) for name, own in entries().items()}
    return {**written, "commands/index": _list({title: g for title, g in groups.items() if g})}


def _page(name: str, entries: list[Entry]) -> str:
    command = cast(App, app[name])
    usage = str(command.usage).removeprefix("Usage: ")
    parts = [f"# `prnas {name}`", _first_line(command), f"```text\n{usage}\n```"]
    parts += [_examples(command.help_epilogue)] if command.help_epilogue else []
    parts.append(f"```{{program}} prnas {name}\n```")
    options = [entry for entry in entries if entry.typed.startswith("-")]
    arguments = [entry for entry in entries if entry not in options]
    if arguments:
        parts += ["## Arguments", *(_described(each) for each in arguments)]
    if options:
        parts += ["## Options", *(_described(each) for each in options)]
    return "\n\n".join(parts) + "\n"


def _first_line(command: App) -> str:
    return command.help.split("\n\n")[0]


def _examples(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines()]
    typed = [line for line in lines if not re.fullmatch(r"\W*Examples?:?", line)]
    return "## Examples\n\n```sh\n" + "\n".join(typed) + "\n```"


def _described(entry: Entry) -> str:
    """`--out, -o PATH` as Sphinx wants it: each name with what it takes."""
    *names, last = entry.typed.split(", ")
    name, _, value = last.partition(" ")
    typed = ", ".join(f"{each} {value}".strip() for each in [*names, name])
    notes = ["It must be given."] if entry.required else []
    notes += [f"One of {_quoted(entry.choices)}."] if entry.choices else []
    notes += [f"Default: `{entry.default}`."] if entry.default else []
    text = " ".join([entry.meaning, *notes])
    return f"```{{option}} {typed}\n\n{text}\n```"


def _quoted(choices: str) -> str:
    return ", ".join(f"`{choice}`" for choice in choices.split(", "))


def _list(groups: dict[str, list[str]]) -> str:
    parts = ["# Commands", "`prnas COMMAND --help` says the same on the screen."]
    for title, group in groups.items():
        lines = {name: _first_line(cast(App, app[name])) for name in group}
        rows = [f"| [`prnas {name}`]({name}.md) | {line} |" for name, line in lines.items()]
        parts += [f"## {title}", "\n".join(["| command | what it does |", "|---|---|", *rows])]
    names = "\n".join(name for group in groups.values() for name in group)
    parts += ["## Exit codes", EXIT_CODES.strip()]
    parts.append(f"```{{toctree}}\n:hidden:\n\n{names}\n```")
    return "\n\n".join(parts) + "\n"

"""The examples in the help: every command has some, and each of them is a valid command line."""

import shlex

import pytest

from prnas.cli import app
from prnas.cli.commands import COMMANDS
from prnas.cli.examples import EXAMPLES, lines
from tests.support.in_process import Cli

NAMES = [command.__name__ for command in COMMANDS]


def test_every_command_has_examples_and_no_other_has() -> None:
    assert sorted(EXAMPLES) == sorted(["", *NAMES])


@pytest.mark.parametrize("name", NAMES)
def test_the_help_shows_them_unbroken(here: Cli, name: str) -> None:
    shown = here.good(name, "--help")
    _, _, end = shown.partition("\nExamples:\n")
    assert [line.strip() for line in end.splitlines()] == EXAMPLES[name].splitlines()


@pytest.mark.parametrize("line", [line for name in EXAMPLES for line in lines(name)])
def test_each_line_is_understood(line: str) -> None:
    program, name, *arguments = shlex.split(line.partition(" > ")[0])
    assert program == "prnas"
    command, bound, ignored = app.parse_args(
        [name, *arguments], exit_on_error=False, print_error=False
    )
    assert command.__name__ == name
    assert not ignored
    assert arguments == [] or bound.arguments


@pytest.mark.parametrize("name", NAMES)
def test_a_line_of_a_commands_help_is_one_of_that_command(name: str) -> None:
    assert lines(name)
    assert all(line.startswith(f"prnas {name}") for line in lines(name))


def test_a_line_that_is_not_understood_is_noticed() -> None:
    with pytest.raises(Exception, match="--sead"):
        app.parse_args(["search", "--sead", "1"], exit_on_error=False, print_error=False)

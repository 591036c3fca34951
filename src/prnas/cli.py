"""The command line: how commands and options are spelt. What they do is in `prnas.commands`.

Nothing heavy is imported here, so that `prnas --help` answers at once.
"""

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

from cyclopts import App, Parameter, Token

import prnas

USER_ERROR = 2
INTERRUPTED = 130

AsJson = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON, for scripts.")]
Overrides = Annotated[
    list[str] | None,
    Parameter(
        name="--set",
        negative="",
        help="Override one value, e.g. --set schedule.cycles.0.epochs=5. May be repeated.",
    ),
]

app = App(
    name="prnas",
    help="Prune-and-Replace Neural Architecture Search: find the cell of a convolutional network "
    "that classifies your images best.",
    version=lambda: prnas.__version__,
    help_format="plaintext",
    result_action="return_value",
)


def _whole(_: object, tokens: Sequence[Token]) -> int:
    """Whole numbers only: the library itself would round 1.5."""
    text = tokens[0].value
    if not text.removeprefix("-").isdecimal() or len(text) > 9:
        raise ValueError(f"a whole number is needed, got {text!r:.60}")
    return int(text)


@app.command
def space(
    setting: Annotated[
        str | None,
        Parameter(
            help="darts-like, depth-restricted, unrestricted, or a YAML file with limits and "
            "initial_pool of your own. Without it, all three are compared."
        ),
    ] = None,
    /,
    *,
    list_: Annotated[
        bool,
        Parameter(name="--list", negative="", help="List the operations by morphing distance."),
    ] = False,
    graph: Annotated[
        Path | None,
        Parameter(help="Draw the graph of the morphisms to this .svg, .png or .pdf file."),
    ] = None,
    steps: Annotated[
        int, Parameter(converter=_whole, help="How many morphing steps to count, 0 to 12.")
    ] = 5,
    as_json: AsJson = False,
) -> None:
    """Show a search space: limits, operations, number of cells."""
    from prnas.commands import space as command

    command.run(setting, steps, list_, graph, as_json)


@app.command
def zoo(
    name: Annotated[str | None, Parameter(help="A published cell; all of them without it.")] = None,
    /,
    *,
    as_json: AsJson = False,
) -> None:
    """List the published cells, or show one."""
    from prnas.commands import zoo as command

    command.run(name, as_json)


@app.command
def draw(
    genotype: Annotated[str, Parameter(help="A published cell's name, or a genotype file.")],
    /,
    *,
    out: Annotated[
        Path | None,
        Parameter(name=["--out", "-o"], help="A .svg, .png or .pdf file. Default: NAME.svg here."),
    ] = None,
) -> None:
    """Draw both cells of a genotype."""
    from prnas.commands import draw as command

    command.run(genotype, out)


@app.command
def recipes(
    name: Annotated[
        str | None, Parameter(help="A recipe to print; all of them without it.")
    ] = None,
    /,
    *,
    as_json: AsJson = False,
) -> None:
    """List the recipes, or print one."""
    from prnas.commands import config as command

    command.run_recipes(name, as_json)


@app.command
def config(
    recipe: Annotated[str, Parameter(help="A recipe's name, or a YAML file.")] = "darts-like",
    /,
    *,
    overrides: Overrides = None,
    as_json: AsJson = False,
    out: Annotated[
        Path | None, Parameter(name=["--out", "-o"], help="Write it to this YAML file instead.")
    ] = None,
) -> None:
    """Print a search's whole config: recipe, overrides and every default."""
    from prnas.commands import config as command

    command.run_config(recipe, overrides or [], as_json, out)


def main(arguments: Sequence[str] | None = None) -> None:
    """The console command. A user's mistake ends in one message and exit code 2."""
    from prnas.errors import UserError
    from prnas.space.problems import FormatError

    _mend_streams()
    try:
        app(arguments)
        sys.stdout.flush()
    except (UserError, FormatError) as error:
        _complain(str(error))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader (head, say) has left; nothing is wrong, and there is nowhere to say so.
        _discard_output()
    except OSError as error:
        _discard_output()
        _complain(f"cannot write the output: {error.strerror}")


def _mend_streams() -> None:
    """Closed streams become silent ones; characters that a terminal lacks become question marks."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - for the whole process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _complain(message: str) -> NoReturn:
    from prnas.commands.output import visible

    print(f"prnas: {visible(message)}", file=sys.stderr)
    sys.exit(USER_ERROR)


def _discard_output() -> None:
    """What is still buffered has nowhere to go; without this, Python would try at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

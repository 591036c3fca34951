"""The command line: how commands and options are spelt. What they do is in `prnas.commands`.

Nothing heavy is imported here, so that `prnas --help` answers at once.
"""

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from cyclopts import App, CycloptsError

import prnas
from prnas.cli.models import evaluate, export, predict
from prnas.cli.pages import report, watch
from prnas.cli.runs import retrain, search
from prnas.cli.spaces import config, data, draw, recipes, space, zoo

USER_ERROR = 2
INTERRUPTED = 130
MOST_SAID = 10_000  # characters of a message


def _mistyped(error: CycloptsError) -> object:
    """A command line that cannot be understood: told like every other mistake."""
    from rich.text import Text

    from prnas.terminal.output import visible

    return Text(f"prnas: {visible(_short(str(error)))}", no_wrap=True, overflow="ignore")


def _short(text: str) -> str:
    return text if len(text) <= MOST_SAID else f"{text[:MOST_SAID]}…"


app = App(
    name="prnas",
    help="Prune-and-Replace Neural Architecture Search: find the cell of a convolutional network "
    "that classifies your images best.",
    version=lambda: prnas.__version__,
    help_format="plaintext",
    result_action="return_value",
    error_formatter=_mistyped,
)
COMMANDS = (
    *(space, zoo, draw, recipes, data, config),
    *(search, retrain),
    *(evaluate, predict, export),
    *(report, watch),
)
for command in COMMANDS:
    app.command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """The console command. A user's mistake ends in one message and exit code 2."""
    from prnas.io.errors import FormatError, UserError
    from prnas.io.progress import bars

    _mend_streams()
    bars.set(True)
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
    except MemoryError:
        _complain("out of memory")
    except OSError as error:
        if error.filename is not None:  # what was typed, such as a name that is too long
            _complain(f"cannot use {error.filename!s:.200}: {error.strerror}")
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
    from prnas.terminal.output import visible

    print(f"prnas: {visible(_short(message))}", file=sys.stderr)
    sys.exit(USER_ERROR)


def _discard_output() -> None:
    """What is still buffered has nowhere to go; without this, Python would try at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

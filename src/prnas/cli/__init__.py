"""The command line. Nothing heavy is imported here, so that `prnas --help` answers at once."""

import codecs
import inspect
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from cyclopts import App, CycloptsError, Parameter, UnknownCommandError, UnusedCliTokensError

import prnas
from prnas.cli.commands import COMMANDS
from prnas.cli.examples import epilogue
from prnas.io.errors import suggestion

USER_ERROR = 2
INTERRUPTED = 130
MOST_CHARACTERS = 10_000  # The longest message that is shown.
ASCII = {"×": "x", "±": "+-", "−": "-", "–": "-", "…": "..."}


def _command_line_error(error: CycloptsError) -> object:
    """The message for a command line that cannot be understood."""
    from rich.text import Text

    match error:
        case UnknownCommandError(unused_tokens=[word, *_]):
            names = [command.__name__ for command in COMMANDS]
            message = f"there is no command '{word:.60}'." + suggestion(word, names)
        case UnusedCliTokensError(unused_tokens=[word, *_]):
            command = " ".join(["prnas", *(error.command_chain or ())])
            message = f"{command} takes no further argument, got '{word}'; see {command} --help"
        case _:
            message = str(error)
    return Text(_shown(message), no_wrap=True, overflow="ignore")


def _shown(message: str) -> str:
    from prnas.terminal.output import visible

    short = message if len(message) <= MOST_CHARACTERS else f"{message[:MOST_CHARACTERS]}…"
    return f"prnas: {visible(short)}"


def _usage(command: Callable[..., None]) -> str:
    """The usage line of a command, with the names of its arguments."""
    words = ["Usage: prnas", command.__name__, "[OPTIONS]"]
    for name, parameter in inspect.signature(command).parameters.items():
        required = parameter.default is parameter.empty
        if parameter.kind is parameter.VAR_POSITIONAL:
            words.append(f"{name.upper()}...")
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            words.append(name.upper() if required else f"[{name.upper()}]")
        elif required:
            words.insert(2, "--out PATH")  # Only `export` has an option that is required.
    return " ".join(words)


def _default(value: Any) -> Any:
    """The default of an option, for its help; none for flags and lists."""
    return None if value is False or value == () else value


app = App(
    name="prnas",
    help="Prune-and-Replace Neural Architecture Search: find the cell of a convolutional network "
    "that classifies your images well.",
    version=lambda: prnas.__version__,
    help_format="plaintext",
    result_action="return_value",
    error_formatter=_command_line_error,
    default_parameter=Parameter(negative="", show_default=_default),
    help_epilogue=epilogue(""),
)
for command in COMMANDS:
    app.command(command, usage=_usage(command), help_epilogue=epilogue(command.__name__))


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
        if error.filename is not None:  # An argument, such as a name that is too long.
            _complain(f"cannot use {error.filename!s:.200}: {error.strerror}")
        _discard_output()
        _complain(f"cannot write the output: {error.strerror}")


def _mend_streams() -> None:
    """Replace closed streams by silent ones, and characters that an encoding lacks by others."""
    codecs.register_error("prnas", _in_ascii)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - for the whole process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="prnas")


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    lacking = error.object[error.start : error.end]
    return "".join(ASCII.get(character, "?") for character in lacking), error.end


def _complain(message: str) -> NoReturn:
    print(_shown(message), file=sys.stderr)
    sys.exit(USER_ERROR)


def _discard_output() -> None:
    """Discard what is still buffered; without this, Python would try to write it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""A user's mistakes: shown as a message, never as a traceback."""

import difflib
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path

_MOST_CHOICES = 25  # More are not listed.


class UserError(Exception):
    """A request that cannot be fulfilled; the message says why, and what would work."""


class FormatError(ValueError):
    """Data that are not in the expected format. `problems` holds one line for each fault."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        several = f"{len(self.problems)} problems\n  " if len(self.problems) > 1 else ""
        super().__init__(several + "\n  ".join(self.problems))


@contextmanager
def cannot(act: str) -> Generator[None]:
    """Turn an `OSError` into a `UserError`: "cannot write a.txt: No space left on device"."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot {act}: {error.strerror or error}") from None


@contextmanager
def reading(file: Path | str) -> Generator[None]:
    """Turn every error of reading and parsing a text file into a `UserError` with its name."""
    try:
        with cannot(f"read {file}"):
            yield
    except FormatError as error:
        raise UserError(f"{file}: {error}") from None
    except UnicodeDecodeError:
        raise UserError(f"{file} is not a text file") from None


def suggestion(word: str, choices: Iterable[str]) -> str:
    """' Did you mean ...?' when a choice is near, and the choices when there are few."""
    names = sorted(choices)
    near = difflib.get_close_matches(word, names, n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    if 0 < len(names) <= _MOST_CHOICES:
        hint += f" Choose from: {', '.join(names)}."
    return hint

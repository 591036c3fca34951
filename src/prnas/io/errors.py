"""A user's mistakes: shown as a message, never as a traceback."""

import difflib
from collections.abc import Iterable, Sequence


class UserError(Exception):
    """What was asked cannot be done; the message says why, and what would work."""


class FormatError(ValueError):
    """What was read is not what it should be. `problems` holds one line for each fault."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        several = f"{len(self.problems)} problems\n  " if len(self.problems) > 1 else ""
        super().__init__(several + "\n  ".join(self.problems))


def suggestion(word: str, choices: Iterable[str]) -> str:
    """' Did you mean ...?' when a choice is near, and the choices when there are few."""
    known = sorted(choices)
    near = difflib.get_close_matches(word, known, n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    if known and len(known) <= 20:
        hint += f" Choose from: {', '.join(known)}."
    return hint

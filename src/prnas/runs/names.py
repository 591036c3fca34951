"""What may be asked of a run. Light: the command line checks it before anything heavy loads."""

import re
from collections.abc import Sequence

from prnas.io.errors import UserError

CHANGEABLE = ("compute.", "checkpoints.")  # in a resumed run: how it is computed, not what


def not_resumable(overrides: Sequence[str]) -> list[str]:
    """The overrides that a resumed run cannot follow."""
    return [override for override in overrides if not override.startswith(CHANGEABLE)]


def check_name(name: str, what: str = "a run's name") -> None:
    """Refuse what is no plain name of a folder."""
    if not re.fullmatch(r"\w[\w .+-]{0,100}", name):
        raise UserError(
            f"{what} is a folder's name, without a path: a letter or digit first, then those, "
            f"blanks and _.+-; got {name!r:.60}"
        )

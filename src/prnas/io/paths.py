"""Questions about paths, answered also for names that no file can have (too long, null bytes)."""

import os
from pathlib import Path

from prnas.io.errors import UserError

exists, is_file, is_folder = os.path.exists, os.path.isfile, os.path.isdir
expanded = os.path.expanduser  # With `~` replaced by the home folder, where there is one.


def home_expanded(path: str) -> Path:
    """The path with `~` replaced; a `UserError` where there is no such home."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise UserError(f"{path!r:.200}: nobody of that name has a home folder") from None

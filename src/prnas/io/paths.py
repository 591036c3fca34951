"""Questions about paths, answered also for names that no file can have (too long, null bytes)."""

import os
from pathlib import Path


def exists(path: Path | str) -> bool:
    return os.path.exists(path)  # noqa: PTH110


def is_file(path: Path | str) -> bool:
    return os.path.isfile(path)  # noqa: PTH113


def is_folder(path: Path | str) -> bool:
    return os.path.isdir(path)  # noqa: PTH112


def expanded(path: str) -> str:
    """`path` with `~` replaced by the home folder, where there is one."""
    return os.path.expanduser(path)  # noqa: PTH111

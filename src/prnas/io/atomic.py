"""Atomic writes: files that are complete or absent, also after a power loss."""

import errno
import os
import re
import secrets
import time
from contextlib import suppress
from pathlib import Path

_LEFTOVER = re.compile(r"\..+\.[0-9a-f]{8}\.tmp")


def write_output(target: Path, data: bytes) -> None:
    """Write to a path that a user named: a file, also behind a link, or a device or a pipe."""
    if target.exists() and not target.is_file():
        target.write_bytes(data)
    else:
        write_atomically(Path(os.path.realpath(target)), data)


def write_atomically(target: Path, data: bytes) -> None:
    """Write a file that no reader ever sees incomplete; on failure nothing is left behind.

    A link or a pipe at the target is replaced by the file: nothing is written elsewhere.
    """
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(target.parent))
    # Not a `tempfile`: those are readable by their owner alone, whatever the umask says.
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def sync_folder(path: Path) -> None:
    """Sync a folder, so that new names in it survive a power loss, where the system can."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_leftovers(folder: Path, age: float = 60.0) -> None:
    """Remove what a killed `write_atomically` left; younger files may still be in use."""
    for path in folder.glob(".*.tmp"):
        if _LEFTOVER.fullmatch(path.name):
            with suppress(OSError):
                if abs(time.time() - path.stat().st_mtime) >= age:
                    path.unlink()

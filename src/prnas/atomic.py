"""Files that appear whole or not at all."""

import errno
import os
import secrets
from pathlib import Path


def write_atomically(target: Path, data: bytes) -> None:
    """Write a file that no reader ever sees half of; on failure nothing is left behind."""
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(target.parent))
    if target.exists() and not target.is_file():
        target.write_bytes(data)  # a device or a pipe, which must not become a file
        return
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

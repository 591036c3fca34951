"""A run's records on the disk: appended to, and mended if somebody else touched them."""

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from prnas.io.atomic import write_atomically
from prnas.io.checked_files import digest

DAMAGED = "damaged-"


class RecordsFile:
    """The records, also held in memory: what a rotation or a damaged disk takes is written anew.

    It is opened with the records of the last checkpoint; what follows them in the file is cut off.
    `warn` receives a message if the file had to be mended; the damaged one is renamed.
    """

    def __init__(self, path: Path, content: bytes, warn: Callable[[str], None]) -> None:
        self.path, self._warn = path, warn
        self._content = bytearray(content)
        self._hash = hashlib.sha256(content)
        checksum = self._hash.hexdigest()
        if content and (not path.is_file() or digest(path, len(content)) != checksum):
            self._set_aside()
            write_atomically(path, content)
            warn(f"{path} was damaged: it is written anew, from the checkpoint")
        self._file = path.open("ab")
        self._file.truncate(len(content))

    @property
    def size(self) -> int:
        return len(self._content)

    @property
    def content(self) -> bytes:
        return bytes(self._content)

    def state(self) -> dict[str, Any]:
        """The size and the checksum of the file, for a checkpoint."""
        return {"size": len(self._content), "sha256": self._hash.hexdigest()}

    def write(self, line: bytes) -> None:
        self._mend()
        self._file.write(line)
        self._file.flush()
        self._hash.update(line)
        self._content += line

    def sync(self) -> None:
        self._mend()
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()

    def _mend(self) -> None:
        """Write the file anew, unless it is still there and as long as it was left."""
        with suppress(FileNotFoundError):
            mine, size = os.fstat(self._file.fileno()), len(self._content)
            if os.path.samestat(self.path.stat(), mine) and mine.st_size == size:
                return
        self._file.close()
        self._set_aside()
        write_atomically(self.path, bytes(self._content))
        self._file = self.path.open("ab")
        self._warn(f"{self.path} was moved or changed by another program: it is written anew")

    def _set_aside(self) -> None:
        if self.path.exists():
            os.replace(self.path, self.path.with_name(DAMAGED + self.path.name))

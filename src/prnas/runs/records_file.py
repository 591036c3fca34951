"""A run's records on the disk: appended to, and mended if somebody else touched them."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prnas.io.atomic import write_atomically

DAMAGED = "damaged-"


class RecordsFile:
    """The records, kept in memory too: what a rotation or a damaged disk takes is written anew.

    It is opened with the records that are known; what follows them in the file, written after the
    last checkpoint, is cut off. `warn` is told of a file that had to be mended, which is kept.
    """

    def __init__(self, path: Path, content: bytes, warn: Callable[[str], None]) -> None:
        self.path, self._warn = path, warn
        self._content = bytearray(content)
        self._hash = hashlib.sha256(content)
        if self._beginning(len(content)) != content:
            self._set_aside()
            write_atomically(path, content)
            warn(f"{path} was damaged: it is written anew, from the checkpoint")
        self._file = path.open("ab")
        self._file.truncate(len(content))

    @property
    def content(self) -> bytes:
        return bytes(self._content)

    def state(self) -> dict[str, Any]:
        """How much there is, and its checksum."""
        return {"size": len(self._content), "sha256": self._hash.hexdigest()}

    def write(self, line: bytes) -> None:
        if not self._is_mine():
            self._restore()
        self._file.write(line)
        self._file.flush()
        self._hash.update(line)
        self._content += line

    def sync(self) -> None:
        if not self._is_mine():
            self._restore()
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()

    def _is_mine(self) -> bool:
        """Whether the file is still there, and as long as it was left."""
        try:
            here = self.path.stat()
        except FileNotFoundError:
            return False
        mine = os.fstat(self._file.fileno())
        return os.path.samestat(here, mine) and mine.st_size == len(self._content)

    def _restore(self) -> None:
        self._file.close()
        self._set_aside()
        write_atomically(self.path, bytes(self._content))
        self._file = self.path.open("ab")
        self._warn(f"{self.path} was moved or changed by another program: it is written anew")

    def _beginning(self, size: int) -> bytes:
        if not self.path.is_file():
            return b""
        with self.path.open("rb") as file:
            return file.read(size)

    def _set_aside(self) -> None:
        if self.path.exists():
            os.replace(self.path, self.path.with_name(DAMAGED + self.path.name))

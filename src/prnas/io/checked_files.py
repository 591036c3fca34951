"""Files of prnas, read with checks: plain files only, verified before they fill the memory."""

import errno
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

_LARGE = 2**28  # Bytes from which on a file is verified before it is loaded.
_CHUNK = 2**22


def read_file(path: Path, most: int) -> bytes:
    """The bytes of a file; an `OSError` if it is a pipe or a device, or has more than `most`."""
    if _size(path) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return path.read_bytes()


def read_verified(path: Path, checksum: str, most: int | None = None) -> bytes | None:
    """The bytes of a plain file if they have this SHA-256 and are at most `most`, else `None`."""
    size = _size(path)
    if most is not None and size > most:
        return None
    # A file with a hole may claim any size, and have none of it on the disk.
    if size > _LARGE and digest(path, size) != checksum:
        return None
    data = path.read_bytes()
    return data if hashlib.sha256(data).hexdigest() == checksum else None


def _size(path: Path) -> int:
    size = path.stat().st_size
    if not path.is_file():  # Reading it might never end.
        raise OSError(errno.EINVAL, "it is not a plain file", str(path))
    return size


def digest(path: Path, size: int) -> str:
    """The SHA-256 of a file's first `size` bytes, read in chunks."""
    _size(path)
    checksum = hashlib.sha256()
    with path.open("rb") as file:
        while size > 0 and (chunk := file.read(min(size, _CHUNK))):
            checksum.update(chunk)
            size -= len(chunk)
    return checksum.hexdigest()


def tensors_in(data: bytes) -> "dict[str, Tensor]":
    """The tensors of a safetensors file; a `ValueError` says what is wrong with it."""
    from safetensors.torch import load  # Heavy: the rest of this file is light.

    try:
        return load(data)
    except Exception as error:  # The library's own, or a KeyError for an unknown dtype.
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"no tensors can be read from it ({reason:.200})") from None

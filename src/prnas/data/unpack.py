"""Untrusted archives: only expected files are unpacked, and none larger than expected."""

import gzip
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from prnas.io.errors import UserError, cannot

_SPARE = 1 << 20  # Bytes for headers and small files that are not needed.
_MOST_EMPTY = 100  # Reads after the end; tarfile itself needs one or two.


class _Bounded:
    """A stream that refuses to give more than `most` bytes, or to be read on and on at its end.

    Otherwise tarfile would read at the end until it has skipped a member of 2**90 bytes.
    """

    def __init__(self, stream: gzip.GzipFile, most: int, name: Path) -> None:
        self._stream, self._left, self._name = stream, most, name
        self._empty = 0

    def read(self, number: int = -1) -> bytes:
        limit = self._left + 1
        data = self._stream.read(limit if number < 0 else min(number, limit))
        self._left -= len(data)
        self._empty += not data
        if self._empty > _MOST_EMPTY:
            raise EOFError("a member is longer than the archive")
        if self._left < 0:
            raise UserError(f"{self._name} unpacks to more than expected; nothing was unpacked")
        return data


def unpack_tar(archive: Path, folder: str, sizes: Mapping[str, int], into: Path) -> None:
    """Unpack the files `folder/NAME` of a .tar.gz into `into`, each of at most its size.

    Other members are skipped, but an archive that reaches outside itself is refused as a whole.
    """
    wanted = {f"{folder}/{name}": name for name in sizes}
    with cannot(f"write to {into.parent}"):
        into.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=into.parent))
    try:
        with gzip.open(archive) as plain:
            bounded = _Bounded(plain, sum(sizes.values()) + _SPARE, archive)
            with tarfile.open(fileobj=bounded, mode="r|") as members:  # pyright: ignore
                for member in members:
                    _check(archive, member)
                    name = wanted.get(str(PurePosixPath(member.name)))
                    if name is None:
                        continue
                    stream = members.extractfile(member) if member.isfile() else None
                    if stream is None or member.size > sizes[name]:
                        limit = f"a file of at most {sizes[name]} bytes"
                        raise UserError(f"{archive}: '{member.name}' is not {limit}")
                    with (scratch / name).open("wb") as file:
                        shutil.copyfileobj(stream, file)
        into.mkdir(exist_ok=True)
        for file in scratch.iterdir():
            file.chmod(0o644)
            os.replace(file, into / file.name)
    # tarfile raises a ValueError for some numbers in headers.
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError) as error:
        raise UserError(f"{archive} is damaged: {error}") from None
    except OSError as error:
        raise UserError(f"cannot unpack {archive} into {into}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def gunzip(path: Path, most: int) -> bytes:
    """The content of a .gz file, which may have no more than `most` bytes."""
    try:
        with gzip.open(path) as plain:
            return _Bounded(plain, most, path).read()
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise UserError(f"{path} is damaged: {error}") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None


def _check(archive: Path, member: tarfile.TarInfo) -> None:
    path = PurePosixPath(member.name)
    # A colon or a backslash would mean something on Windows.
    unsafe = path.is_absolute() or ".." in path.parts or set(member.name) & set(":\\")
    if unsafe or not (member.isfile() or member.isdir()):
        raise UserError(
            f"{archive} holds '{member.name:.100}', which is not a plain file inside it; "
            "nothing was unpacked"
        )

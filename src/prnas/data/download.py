"""Files from the web: whole and verified, or not there at all."""

import hashlib
import http.client
import os
import secrets
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock

from prnas.data.catalog import Download
from prnas.io.errors import UserError
from prnas.io.progress import bar

_CHUNK = 1 << 18
_TIMEOUT = 30  # seconds without a byte


def download(wanted: Download, folder: Path, say: Callable[[str], None], otherwise: str) -> Path:
    """The file in `folder`, fetched if it is not there. `otherwise` says how to do without a web.

    A file that is already there is verified as well.
    """
    target = folder / wanted.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Several processes of one run would otherwise all fetch it.
        with FileLock(folder / ".prnas.lock"):
            if target.is_file():
                verify(target, wanted)
            else:
                say(f"downloading {wanted.url} to {folder}")
                _fetch(wanted, target, otherwise)
    except OSError as error:
        raise UserError(
            f"cannot write to {folder}: {error.strerror or error}. {otherwise}"
        ) from None
    return target


def verify(path: Path, wanted: Download) -> None:
    """A `UserError` unless the file is the one that its makers published."""
    digest = hashlib.md5(usedforsecurity=False)
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    if digest.hexdigest() != wanted.md5:
        raise UserError(
            f"{path} is damaged, or is not the file of {wanted.url}: its MD5 is "
            f"{digest.hexdigest()}, not {wanted.md5}. Remove it, and it will be downloaded"
        )


def _fetch(wanted: Download, target: Path, otherwise: str) -> None:
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    digest = hashlib.md5(usedforsecurity=False)
    try:
        with temporary.open("xb") as file:
            for chunk in _chunks(wanted, otherwise):
                digest.update(chunk)
                file.write(chunk)
        if digest.hexdigest() != wanted.md5:
            raise UserError(
                f"what {wanted.url} sends is not the known file: its MD5 is "
                f"{digest.hexdigest()}, not {wanted.md5}. Nothing was kept. {otherwise}"
            )
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _chunks(wanted: Download, otherwise: str) -> Iterator[bytes]:
    """The file's bytes. Only the web's own errors become messages about the web."""
    try:
        # The address is one of ours, and http or https.
        with urllib.request.urlopen(wanted.url, timeout=_TIMEOUT) as answer:  # noqa: S310
            length = answer.headers.get("Content-Length", "")
            total = int(length) if length.isdecimal() and len(length) < 16 else None
            received = 0
            with bar(wanted.name, total, in_bytes=True) as shown:
                while chunk := answer.read(_CHUNK):
                    received += len(chunk)
                    if received > wanted.most_bytes:
                        raise UserError(f"{wanted.url} sends more than the known file. {otherwise}")
                    shown.advance(len(chunk))
                    yield chunk
            if total is not None and received < total:
                raise UserError(f"the download of {wanted.url} broke off. {otherwise}")
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise UserError(f"cannot download {wanted.url}: {reason}. {otherwise}") from None

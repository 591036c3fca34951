"""Downloads: files that are complete and verified, or not there at all."""

import hashlib
import http.client
import os
import secrets
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock

from prnas.data.catalog import ROOT_VARIABLE, Download
from prnas.io.errors import UserError, cannot
from prnas.io.progress import bar

_CHUNK = 1 << 18
_TIMEOUT = 30  # Seconds without a byte.


def download(wanted: Download, folder: Path, say: Callable[[str], None], otherwise: str) -> Path:
    """The verified file, downloaded if need be; `otherwise` is advice for those without network."""
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
            f"cannot write to {folder}: {error.strerror or error}. Choose another folder by "
            f"--data-root (data.root) or {ROOT_VARIABLE}"
        ) from None
    return target


def without_network(files: str, folder: Path) -> str:
    """Advice where files cannot be downloaded or written."""
    return (
        f"Without a network, put {files} into {folder}, or into another folder that --data-root "
        f"(data.root) or {ROOT_VARIABLE} names"
    )


def verify(path: Path, wanted: Download) -> None:
    """A `UserError` unless the file is the one that its makers published."""
    with cannot(f"read {path}"), path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False))
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
                f"{wanted.url} sends another file than expected: its MD5 is "
                f"{digest.hexdigest()}, not {wanted.md5}. It was deleted. {otherwise}"
            )
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _chunks(wanted: Download, otherwise: str) -> Iterator[bytes]:
    """The file's bytes. Errors of the network become a `UserError`; others pass."""
    try:
        # The address is from the catalog, and http or https.
        with urllib.request.urlopen(wanted.url, timeout=_TIMEOUT) as response:  # noqa: S310
            length = response.headers.get("Content-Length", "")
            total = int(length) if length.isdecimal() and len(length) < 16 else None
            received = 0
            with bar(wanted.name, total, in_bytes=True) as progress:
                while chunk := response.read(_CHUNK):
                    received += len(chunk)
                    if received > wanted.most_bytes:
                        raise UserError(f"{wanted.url} sends more than expected. {otherwise}")
                    progress.advance(len(chunk))
                    yield chunk
            if total is not None and received < total:
                raise UserError(f"the download of {wanted.url} broke off. {otherwise}")
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise UserError(f"cannot download {wanted.url}: {reason}. {otherwise}") from None

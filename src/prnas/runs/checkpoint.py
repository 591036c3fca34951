"""Checkpoints: the whole state in safetensors and JSON, whole or not at all.

A checkpoint is a folder with `state.json`, `tensors.safetensors`, the records up to then and
`checksums.json`. It is written under another name, synced to the disk and renamed; only then do
older ones go. Nothing in it is ever unpickled.
"""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import save
from torch import Tensor

from prnas.io.atomic import sync_folder
from prnas.io.checked_files import read_file, read_verified, tensors_in
from prnas.io.errors import FormatError, UserError
from prnas.io.reading import check_header, parse_json
from prnas.runs.integrity import CHECKSUMS, FORMAT, STATE, VERSION
from prnas.runs.names import RECORDS

TENSORS = "tensors.safetensors"
_UNFINISHED = ".unfinished-"
_NAME = re.compile(r"[0-9]{6}|[1-9][0-9]{6,15}")
# I/O errors caused by this process or machine, not by a damaged file.
_NOT_DAMAGE = {errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR}
_MOST = {STATE: 2**26, RECORDS: 2**32}  # bytes, far more than any run's
_MOST_CHECKSUMS = 2**16  # bytes


class DamagedError(UserError):
    """A checkpoint that is not what was once written."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Plain data and tensors that together are a run's whole state, and its records so far."""

    state: dict[str, Any]
    tensors: dict[str, Tensor]
    records: bytes = b""


class Checkpoints:
    """The checkpoints of a run, numbered in the order they were written."""

    def __init__(self, folder: Path, keep: int) -> None:
        self.folder, self.keep = folder, keep

    def numbers(self) -> list[int]:
        if not self.folder.is_dir():
            return []
        names = (entry.name for entry in self.folder.iterdir() if entry.is_dir())
        return sorted(int(name) for name in names if _NAME.fullmatch(name))

    def save(self, checkpoint: Checkpoint) -> Path:
        """Write a checkpoint; older ones go once it is safe on the disk."""
        if not self.folder.is_dir():
            self.folder.mkdir()  # in a folder that is there: a run that was deleted stays deleted
            sync_folder(self.folder.parent)
        number = max(self.numbers(), default=0) + 1
        target = self.folder / f"{number:06}"
        unfinished = self.folder / f"{_UNFINISHED}{number:06}"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        state = {"format": FORMAT, "version": VERSION, **checkpoint.state}
        files = {
            STATE: json.dumps(state, allow_nan=False).encode(),
            TENSORS: save({name: value.contiguous() for name, value in checkpoint.tensors.items()}),
            RECORDS: checkpoint.records,
        }
        sums = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
        files[CHECKSUMS] = json.dumps(sums).encode()
        for name, data in files.items():
            _write_synced(unfinished / name, data)
        sync_folder(unfinished)
        os.replace(unfinished, target)
        sync_folder(self.folder)
        self._drop_old()
        return target

    def _drop_old(self) -> None:
        for number in self.numbers()[: -self.keep]:
            # Renamed first: a deletion that is cut short must not look like a checkpoint.
            dying = self.folder / f"{_UNFINISHED}{number:06}"
            shutil.rmtree(dying, ignore_errors=True)
            os.replace(self.folder / f"{number:06}", dying)
            shutil.rmtree(dying, ignore_errors=True)

    def remove_leftovers(self) -> None:
        """Remove what a killed process was writing or deleting."""
        for path in self.folder.glob(f"{_UNFINISHED}*"):
            shutil.rmtree(path, ignore_errors=True)

    def newest(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest checkpoint that is whole, and what is wrong with newer ones.

        Damaged checkpoints that are newer than a whole one are renamed, not deleted.
        """
        damaged: dict[Path, str] = {}
        for number in reversed(self.numbers()):
            path = self.folder / f"{number:06}"
            try:
                checkpoint = read_checkpoint(path)
            except DamagedError as error:
                damaged[path] = str(error)
                continue
            for broken in damaged:
                target = self.folder / f"broken-{broken.name}"
                shutil.rmtree(target, ignore_errors=True)
                os.replace(broken, target)
            return checkpoint, list(damaged.values())
        return None, list(damaged.values())


def read_checkpoint(path: Path) -> Checkpoint:
    """A checkpoint, verified by its checksums; a `UserError` says what is wrong with it."""
    files: dict[str, bytes] = {}
    try:
        sums = parse_json(read_file(path / CHECKSUMS, _MOST_CHECKSUMS).decode())
        for name in (STATE, TENSORS, RECORDS):
            checksum = sums.get(name) if isinstance(sums, dict) else None
            data = read_verified(path / name, str(checksum), _MOST.get(name))
            if data is None:
                raise DamagedError(f"checkpoint {path} is damaged: {name} has another checksum")
            files[name] = data
    except FileNotFoundError as error:
        raise DamagedError(f"checkpoint {path} is damaged: {error.filename} is missing") from None
    except OSError as error:
        if error.errno in _NOT_DAMAGE:  # the files may be whole
            raise UserError(f"checkpoint {path} cannot be read: {error.strerror}") from None
        problem = f"{error.filename}: {error.strerror}"
        raise DamagedError(f"checkpoint {path} is damaged: {problem}") from None
    except (FormatError, UnicodeDecodeError) as error:
        raise DamagedError(f"checkpoint {path} is damaged: {CHECKSUMS}: {error}") from None
    # From here on the files are what was written: what cannot be read is of another kind.
    try:
        state = check_header(json.loads(files[STATE]), FORMAT, VERSION)
        return Checkpoint(state, tensors_in(files[TENSORS]), files[RECORDS])
    except (ValueError, RecursionError) as error:
        raise UserError(f"checkpoint {path} cannot be used: {error!s:.200}") from None


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors called `prefix`/name, by that name."""
    start = f"{prefix}/"
    return {name[len(start) :]: tensors[name] for name in tensors if name.startswith(start)}

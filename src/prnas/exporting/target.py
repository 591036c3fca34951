"""The target of an export: its format, from the ending of its name, and its files."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from prnas.config.choices import ExportFormat as Format
from prnas.io.atomic import write_output
from prnas.io.errors import UserError
from prnas.models.names import CARD, WEIGHTS

FORMATS: tuple[Format, ...] = get_args(Format)
SUFFIXES: dict[Format, str] = {
    "safetensors": ".safetensors",
    "onnx": ".onnx",
    "pt2": ".pt2",
    "python": ".py",
}
NORMALIZING: tuple[Format, ...] = ("onnx", "pt2")
CHOICES = "a folder or .safetensors, .onnx, .pt2 or .py"


@dataclass(frozen=True, slots=True)
class Target:
    """The files to write, in this order: the one that is loaded comes last."""

    file_format: Format
    files: tuple[Path, ...]

    @property
    def entry(self) -> Path:
        """The file or folder that a program loads."""
        last = self.files[-1]
        if self.file_format != "safetensors":
            return last
        return last.parent if last.name == CARD else self.files[0]


def find_target(path: Path, file_format: Format | None) -> Target:
    """The files of an export to `path`; a `UserError` if its name does not fit.

    Without a format, the ending decides; a folder, or a name without an ending, means the
    folder of a safetensors export. In an existing folder, the other formats are called `model`.
    """
    if file_format is not None and file_format not in FORMATS:
        raise UserError(f"there is no format {file_format!r:.60}; choose {', '.join(FORMATS)}")
    by_suffix: dict[str, Format] = {suffix: name for name, suffix in SUFFIXES.items()}
    folder, suffix = path.is_dir(), path.suffix.lower()
    by_name = None if folder else by_suffix.get(suffix)
    if file_format is None:
        if by_name is None and suffix and not folder:
            raise UserError(
                f"no format has the ending {suffix!r:.60}: write to {CHOICES}, or give --format"
            )
        file_format = by_name or "safetensors"
    elif by_name not in (None, file_format):
        raise UserError(f"{path} has the ending of {by_name}, but --format is {file_format}")
    if file_format == "safetensors":
        if by_name is None:
            return Target(file_format, (path / WEIGHTS, path / CARD))
        return Target(file_format, (path, path.with_suffix(".json")))
    if folder:
        path = path / f"model{SUFFIXES[file_format]}"
    elif by_name is None:
        path = path.with_name(path.name + SUFFIXES[file_format])
    if file_format != "python":
        return Target(file_format, (path,))
    _check_module_name(path)
    return Target(file_format, (path.with_suffix(".safetensors"), path))


def _check_module_name(path: Path) -> None:
    name = path.stem
    if path.suffix != ".py" or not name.isidentifier():
        raise UserError(
            f"{path.name} could not be imported: a Python file is called like a variable, in "
            "letters, digits and _, and ends in .py"
        )
    if name in sys.stdlib_module_names or name in ("torch", "prnas"):
        raise UserError(f"{path.name} would hide the module '{name}' of Python; call it otherwise")


def check_free(target: Target, force: bool) -> None:
    """Before the work: a `UserError` if the files cannot be written."""
    for file in target.files:
        if file.is_dir():
            raise UserError(f"{file} is a folder; a file is to be written there")
        if file.exists() and not force:
            raise UserError(f"{file} is there already; --force overwrites it")
    folder = target.files[0].parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise UserError(f"cannot write {target.entry}: {folder} is a file")
    if not os.access(folder, os.W_OK):
        raise UserError(f"cannot write {target.entry}: no permission to write in {folder}")


def write(target: Target, contents: tuple[bytes, ...]) -> None:
    """Write all files, or, unless they were there before, none. Missing folders are made."""
    folder = target.files[0].parent
    new_folders = [path for path in (folder, *folder.parents) if not path.exists()]
    new: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, data in zip(target.files, contents, strict=True):
            if not file.exists():
                new.append(file)
            write_output(file, data)
    except BaseException as error:
        for file in new:
            file.unlink(missing_ok=True)
        for path in new_folders:
            if path.is_dir():
                path.rmdir()
        if isinstance(error, OSError):
            raise UserError(f"cannot write {target.entry}: {error.strerror}") from None
        raise

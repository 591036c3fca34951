"""Where an export goes: its format, from the ending of its name, and its files."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from prnas.io.atomic import write_output
from prnas.io.errors import UserError
from prnas.models.model import CARD, WEIGHTS

Format = Literal["safetensors", "onnx", "pt2", "python"]
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
    by_suffix: dict[str, Format] = {suffix: one for one, suffix in SUFFIXES.items()}
    folder, suffix = path.is_dir(), path.suffix.lower()
    told = None if folder else by_suffix.get(suffix)
    if file_format is None:
        if told is None and suffix and not folder:
            raise UserError(
                f"no format has the ending {suffix!r:.60}: write to {CHOICES}, or say --format"
            )
        file_format = told or "safetensors"
    elif told not in (None, file_format):
        raise UserError(f"{path} has the ending of {told}, but the format is to be {file_format}")
    if file_format == "safetensors":
        if told is None:
            return Target(file_format, (path / WEIGHTS, path / CARD))
        return Target(file_format, (path, path.with_suffix(".json")))
    if folder:
        path = path / f"model{SUFFIXES[file_format]}"
    elif told is None:
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
    """Before the work: could the files be written? A `UserError` says why not."""
    for file in target.files:
        if file.is_dir():
            raise UserError(f"{file} is a folder; a file is to be written there")
        if file.exists() and not force:
            raise UserError(f"{file} is there already; --force writes over it")
    folder = target.files[0].parent
    if _makes_folder(target):
        while not folder.exists():
            folder = folder.parent
    if not folder.is_dir():
        reason = "is a file" if folder.exists() else "does not exist"
        raise UserError(f"cannot write {target.entry}: {folder} {reason}")
    if not os.access(folder, os.W_OK):
        raise UserError(f"cannot write {target.entry}: no permission to write in {folder}")


def write(target: Target, contents: tuple[bytes, ...]) -> None:
    """Write all files, or, unless they were there before, none."""
    folder = target.files[0].parent
    made_folder = _makes_folder(target) and not folder.exists()
    new: list[Path] = []
    try:
        if made_folder:
            folder.mkdir(parents=True)
        for file, data in zip(target.files, contents, strict=True):
            if not file.exists():
                new.append(file)
            write_output(file, data)
    except BaseException as error:
        for file in new:
            file.unlink(missing_ok=True)
        if made_folder and folder.is_dir():
            folder.rmdir()
        if isinstance(error, OSError):
            raise UserError(f"cannot write {target.entry}: {error.strerror}") from None
        raise


def _makes_folder(target: Target) -> bool:
    return target.files[-1].name == CARD

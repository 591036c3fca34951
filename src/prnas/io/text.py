"""Text files, read with suspicion and written whole."""

from pathlib import Path

from prnas.io.atomic import write_output
from prnas.io.errors import UserError
from prnas.io.reading import MAX_CHARACTERS


def read_text(path: Path) -> str:
    """A text file, or a `UserError` that says what is the matter with it."""
    if path.is_dir():
        raise UserError(f"{path} is a folder; a file is needed")
    try:
        with path.open("rb") as file:
            raw = file.read(4 * MAX_CHARACTERS + 1)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    if len(raw) > 4 * MAX_CHARACTERS:
        raise UserError(f"{path} is too large to be one of prnas's files")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path} is not a text file") from None


def write_text(path: Path, text: str) -> None:
    """Write a whole file or nothing, or a `UserError` that says why not."""
    try:
        write_output(path, text.encode())
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None

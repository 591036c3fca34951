"""Text files: size and encoding are checked when they are read; written whole or not at all."""

from pathlib import Path

from prnas.io.atomic import write_output
from prnas.io.errors import UserError, cannot, reading
from prnas.io.reading import MAX_CHARACTERS


def read_text(path: Path) -> str:
    """The text of a file; a `UserError` says what is wrong with it."""
    if path.is_dir():
        raise UserError(f"{path} is a folder; a file is needed")
    with reading(path):
        with path.open("rb") as file:
            raw = file.read(4 * MAX_CHARACTERS + 1)
        if len(raw) > 4 * MAX_CHARACTERS:
            raise UserError(f"{path} is too large to be a file of prnas")
        return raw.decode("utf-8-sig")


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all; a `UserError` says why not."""
    with cannot(f"write {path}"):
        write_output(path, text.encode())

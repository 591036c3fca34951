"""Pictures on their way to a file."""

import importlib.util
from pathlib import Path

from prnas.drawing.picture import SUFFIXES, Picture, save
from prnas.io.errors import UserError
from prnas.terminal.output import show


def save_picture(picture: Picture, path: Path, quiet: bool = False) -> None:
    """Write a picture in the format that the path's ending names, and say where it went.

    Quiet, for output that a script reads.
    """
    try:
        save(picture, path)
    except (ValueError, ImportError) as error:  # a wrong ending, or matplotlib missing
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    if not quiet:
        show(f"wrote {path}")


def check_picture(path: Path) -> None:
    """Long work comes before a picture: better to hear now that `--picture` cannot be drawn."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UserError(f"--picture must end in {', '.join(SUFFIXES)}, got '{path.name}'")
    if not path.parent.is_dir():
        raise UserError(f"--picture: there is no folder {path.parent}")
    if suffix != ".svg" and importlib.util.find_spec("matplotlib") is None:
        raise UserError(
            "--picture: PNG and PDF need matplotlib: pip install 'prnas[figures]', or write .svg"
        )

"""Pictures that commands write to files."""

import importlib.util
from pathlib import Path

from prnas.drawing.picture import SUFFIXES, Picture, save
from prnas.io.errors import UserError, cannot
from prnas.terminal.output import show


def save_picture(picture: Picture, path: Path, quiet: bool = False) -> None:
    """Write a picture in the format of the path's ending; unless `quiet`, say so."""
    try:
        with cannot(f"write {path}"):
            save(picture, path)
    except (ValueError, ImportError) as error:  # A wrong ending, or matplotlib is missing.
        raise UserError(str(error)) from None
    if not quiet:
        show(f"wrote {path}")


def check_picture(path: Path) -> None:
    """Refuse a `--picture` that could not be drawn, before long work begins."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UserError(f"--picture must end in {', '.join(SUFFIXES)}, got '{path.name}'")
    if not path.parent.is_dir():
        raise UserError(f"--picture: there is no folder {path.parent}")
    if suffix != ".svg" and importlib.util.find_spec("matplotlib") is None:
        raise UserError(
            "--picture: PNG and PDF need matplotlib: pip install 'prnas[figures]', or write .svg"
        )

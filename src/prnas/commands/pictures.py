"""Pictures on their way to a file."""

from pathlib import Path

from prnas.commands.output import show
from prnas.errors import UserError
from prnas.reporting.picture import Picture, save


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

"""`prnas draw`: the cells of a genotype as a picture; and the pictures of other commands."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from prnas.drawing.picture import SUFFIXES, Picture, save
from prnas.io.errors import UserError, cannot
from prnas.io.extras import how_to_install
from prnas.runs import named
from prnas.space import zoo
from prnas.terminal.output import show


def run(name: str, out: Path | None) -> None:
    from prnas.drawing.cells import draw_genotype

    genotype, _ = named.genotype_and_data(name)
    published = name in zoo.names()
    stem = name if published else Path(name).resolve().stem
    title = zoo.entry(name).title if published else stem
    save_picture(draw_genotype(genotype, title), out or Path(f"{stem}.svg"))


def save_picture(picture: Picture, path: Path, quiet: bool = False) -> None:
    """Write a picture in the format of the path's ending; unless `quiet`, say so."""
    try:
        with cannot(f"write {path}"):
            save(picture, path)
    except (ValueError, ImportError) as error:  # A wrong ending, or matplotlib is missing.
        raise UserError(str(error)) from None
    if not quiet:
        show(f"wrote {path}")


def check_target(option: str, path: Path, suffixes: Sequence[str]) -> None:
    """Refuse a file that could not be written, before long work begins."""
    if path.suffix.lower() not in suffixes:
        raise UserError(f"{option} must end in {', '.join(suffixes)}, got '{path.name}'")
    if path.is_dir():
        raise UserError(f"{option}: {path} is a folder")
    if not path.parent.is_dir():
        raise UserError(f"{option}: there is no folder {path.parent}")


def check_picture(path: Path) -> None:
    """Refuse a `--picture` that could not be drawn."""
    check_target("--picture", path, SUFFIXES)
    if path.suffix.lower() != ".svg" and importlib.util.find_spec("matplotlib") is None:
        raise UserError(
            f"--picture: PNG and PDF need matplotlib: {how_to_install('figures')}; or write .svg"
        )

"""The best network for other programs: one Python file, and ONNX where it can be written."""

from collections.abc import Callable
from pathlib import Path

from prnas.exporting.export import Exported, export
from prnas.exporting.onnx import check_onnx
from prnas.fitting.names import EXPORTS
from prnas.io.errors import UserError
from prnas.models.model import Model

PYTHON, ONNX = "net.py", "net.onnx"


def write_exports(
    model: Model, folder: Path, say: Callable[[str], None]
) -> dict[str, tuple[str, ...]]:
    """The files that are there, by name, and how each is loaded; what is there already is kept."""
    made: dict[str, tuple[str, ...]] = {}
    for name in (PYTHON, ONNX):
        target = folder / EXPORTS / name
        if target.is_file():
            made[name] = ()
            continue
        try:
            if name == ONNX:
                check_onnx()
            done: Exported = export(model, target, normalize=name == ONNX, force=True)
        except UserError as error:
            say(f"{name} is not written: {error}")
            continue
        made[name] = done.loading
    return made

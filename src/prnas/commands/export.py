"""`prnas export`: a trained model as files for other tools."""

import shlex
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.text import Text

from prnas.commands.options import ExportOptions
from prnas.exporting.export import export
from prnas.runs.named import check_has_model
from prnas.terminal.output import facts, show, show_json, show_next


def run(path: Path, options: ExportOptions) -> None:
    check_has_model(path)
    with _status() as progress:
        exported = export(
            path,
            options.out,
            file_format=options.file_format,
            normalize=options.normalize,
            force=options.force,
            progress=progress,
        )
    if options.as_json:
        data = asdict(exported) | {"files": [str(file) for file in exported.files]}
        show_json({"format": data.pop("file_format"), **data})
        return
    difference = f"{exported.largest_difference:.1e}, of logits up to {exported.largest_logit:.3g}"
    pairs = [
        *_lines("wrote", [f"{file} ({_size(file)})" for file in exported.files]),
        ("takes", exported.takes),
        ("checked", exported.checked),
        ("", f"largest difference {difference}"),
        ("", f"(the model's own rounding: {exported.rounding:.1e})"),
        *_lines("load it", exported.loading),
    ]
    show(facts(pairs))
    if exported.file_format == "python":
        show_next(f"python {shlex.quote(str(exported.files[-1]))}")


def _lines(name: str, lines: Sequence[str]) -> list[tuple[str, str]]:
    return [("" if index else name, line) for index, line in enumerate(lines)]


def _size(file: Path) -> str:
    size = file.stat().st_size
    return f"{size / 1e6:,.1f} MB" if size >= 99_950 else f"{size / 1e3:.1f} kB"


@contextmanager
def _status() -> Generator[Callable[[str], object]]:
    """A status line that vanishes at the end; only where standard error is a terminal."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    with Console(stderr=True).status("loading") as status:
        yield lambda text: status.update(Text(text))

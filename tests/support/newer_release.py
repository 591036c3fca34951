"""A release that has fields which this one does not know: everywhere where one may be added."""

import ast
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import prnas

SOURCE = Path(prnas.__file__).parent
VERSION, FIELD, VALUE = "99.0.0", "newer_field", 7
# All classes with fields of these files, and single classes elsewhere.
WHOLE_FILES = ("config/*.py", "runs/records.py", "runs/record_lines.py")
CLASSES = {
    **{"space/schedule.py": {"Cycle", "Schedule"}, "space/setting.py": {"Limits", "Setting"}},
    **{"models/card.py": {"ModelCard"}, "runs/state.py": {"Position"}},
}


def write_newer_release(folder: Path) -> Path:
    """The sources of `prnas` with a field more, which has a default, in every config and record.

    Returned is the folder that Python must look into for them.
    """
    target = folder / "newer"
    copy = target / "prnas"
    shutil.copytree(SOURCE, copy)
    top = copy / "__init__.py"
    text, times = re.subn(r'__version__ = ".*"', f'__version__ = "{VERSION}"', top.read_text())
    assert times == 1
    top.write_text(text)
    for pattern in WHOLE_FILES:
        for path in copy.glob(pattern):
            _add_field(path, _classes_with_fields(path))
    for name, classes in CLASSES.items():
        _add_field(copy / name, classes)
    return target


def _classes(path: Path) -> dict[str, ast.ClassDef]:
    nodes = ast.parse(path.read_text()).body
    return {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}


def _classes_with_fields(path: Path) -> set[str]:
    return {name for name, node in _classes(path).items() if _last_field(node)}


def _last_field(node: ast.ClassDef) -> int:
    """The line where the fields end; 0 without any."""
    ends = [field.end_lineno or 0 for field in node.body if isinstance(field, ast.AnnAssign)]
    return max(ends, default=0)


def _add_field(path: Path, classes: Iterable[str]) -> None:
    lines = path.read_text().splitlines(keepends=True)
    ends = [_last_field(_classes(path)[name]) for name in classes]
    for end in sorted(ends, reverse=True):  # from below, so that lines above keep their numbers
        lines.insert(end, f"    {FIELD}: int = {VALUE}\n")
    path.write_text("".join(lines))

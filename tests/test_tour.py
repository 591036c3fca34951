"""The tour, the rooms' READMEs and CONTRIBUTING name only what exists; the guides stay short."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import prnas

SOURCE = Path(prnas.__file__).parent
TOP = SOURCE.parents[1]
TOUR = TOP / "docs" / "tour.md"
READMES = [path.with_name("README.md") for path in sorted(SOURCE.glob("*/__init__.py"))]
CONTRIBUTING = TOP / "CONTRIBUTING.md"
DOCUMENTS = [TOUR, CONTRIBUTING, *READMES]
# `path.py`, `path.py: Name` or `path.py: Name.method`, also where a line ends within it.
REFERENCE = re.compile(r"`([\w/]+\.py)(?::\s+(\w+)(?:\.(\w+))?)?`")


def title(path: Path) -> str:
    return path.relative_to(TOP).as_posix()


def names_in(body: list[ast.stmt]) -> dict[str, list[ast.stmt]]:
    """What a module or a class defines, each with its own body."""
    names: dict[str, list[ast.stmt]] = {}
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names[node.name] = node.body
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id: [] for target in targets if isinstance(target, ast.Name)}
    return names


@cache
def module_names(path: Path) -> dict[str, list[ast.stmt]]:
    return names_in(ast.parse(path.read_text(encoding="utf-8")).body)


def problem(path: str, name: str, method: str) -> str | None:
    """What is wrong with a reference; paths are below the package or the top folder."""
    file = next((root / path for root in (SOURCE, TOP) if (root / path).is_file()), None)
    if file is None:
        return f"{path} is no file"
    if name and name not in module_names(file):
        return f"{path} has no {name}"
    if method and method not in names_in(module_names(file)[name]):
        return f"{path}: {name} has no {method}"
    return None


@pytest.mark.parametrize("document", DOCUMENTS, ids=title)
def test_references_exist(document: Path) -> None:
    references = REFERENCE.findall(document.read_text(encoding="utf-8"))
    assert references, "a guide to the code names some of it"
    assert [wrong for one in references if (wrong := problem(*one))] == []


def test_a_reference_that_does_not_exist_is_noticed() -> None:
    assert problem("space/pools.py", "Pools", "apply") is None
    assert problem("space/nowhere.py", "", "") == "space/nowhere.py is no file"
    assert problem("space/pools.py", "Nobody", "") == "space/pools.py has no Nobody"
    assert problem("space/pools.py", "Pools", "fly") == "space/pools.py: Pools has no fly"


def test_the_tour_is_short() -> None:
    assert len(TOUR.read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize("document", READMES, ids=title)
def test_a_room_introduces_itself_briefly(document: Path) -> None:
    lines = document.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith(f"# {document.parent.name}: ")
    assert len(lines) <= 15


def test_the_tour_visits_the_rooms() -> None:
    rooms = re.findall(r"^\|[^|]*\| `(\w+)` \|", TOUR.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rooms) == [document.parent.name for document in READMES]


def test_slow_tests_are_listed_with_what_remains_fast() -> None:
    rooms = [TOP / "tests", TOP / "torture", TOP / "benchmarks"]
    slow = {
        (title(file), node.name)
        for room in rooms
        for file in room.rglob("test_*.py")
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
        and any("mark.slow" in ast.unparse(decorator) for decorator in node.decorator_list)
    }
    rows = re.findall(
        r"^\| `(.*?): (test_\w+)`", CONTRIBUTING.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(rows) == sorted(slow)

"""The rooms of the house stand in one order: each imports only itself and rooms above it."""

import ast
from pathlib import Path

import pytest

import prnas
from tests.support.command_line import modules_after, modules_after_each

SOURCE = Path(prnas.__file__).parent
TOP = SOURCE.parents[1]
GROUND_FLOOR = ("io", "space", "searchers", "config")
MIDDLE_FLOOR = ("nets", "data", "drawing", "models", "exporting", "runs", "report")
TOP_FLOOR = ("retraining", "searching", "studies", "fitting", "terminal", "commands", "cli")
ROOMS = (*GROUND_FLOOR, *MIDDLE_FLOOR, *TOP_FLOOR)
DEVELOPERS_FOLDERS = ("tests", "benchmarks", "torture")


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found.add(node.module or "")
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def sources(room: str) -> list[Path]:
    return sorted((SOURCE / room).rglob("*.py"))


def rooms_of(path: Path) -> set[str]:
    """The rooms that a file imports from."""
    names = [name.split(".") for name in imports(path)]
    return {name[1] for name in names if name[0] == "prnas" and len(name) > 1} & set(ROOMS)


def test_every_package_is_a_room() -> None:
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert packages == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_rooms_above_it(room: str) -> None:
    allowed = set(ROOMS[: ROOMS.index(room) + 1])
    for path in sources(room):
        assert rooms_of(path) <= allowed, path


def test_kernels_know_no_modules_of_the_networks() -> None:
    for path in sources("nets/kernels"):
        ours = {name for name in imports(path) if name.startswith("prnas.")}
        assert all(name.startswith("prnas.nets.kernels") for name in ours), path


def test_the_search_space_knows_no_torch() -> None:
    for path in [*sources("space"), *sources("searchers"), *sources("config")]:
        heads = {name.split(".")[0] for name in imports(path)}
        assert not heads & {"torch", "numpy", "matplotlib", "rich"}, path


def test_tests_benchmarks_and_torture_form_no_circle() -> None:
    """`tests` import neither of the others; those take from the tests only what is for sharing."""
    for folder in DEVELOPERS_FOLDERS:
        for path in (TOP / folder).rglob("*.py"):
            names = {name for name in imports(path) if name.split(".")[0] in DEVELOPERS_FOLDERS}
            others = {name for name in names if name.split(".")[0] != folder}
            assert all(name.startswith("tests.support") for name in others), path


def test_what_tests_share_is_in_one_place() -> None:
    for path in (TOP / "tests").rglob("*.py"):
        for name in imports(path):
            if name.startswith("tests."):
                assert name.startswith("tests.support"), f"{path} imports {name}"


def test_tests_mirror_the_rooms() -> None:
    folders = {path.parent.name for path in (TOP / "tests").glob("*/test_*.py")}
    assert folders == set(ROOMS)
    within = {
        path.parent.relative_to(SOURCE).as_posix()
        for path in SOURCE.glob("*/*/*.py")
        if path.name != "__init__.py"
    }
    tested = {
        path.parent.relative_to(TOP / "tests").as_posix()
        for path in (TOP / "tests").glob("*/*/test_*.py")
    }
    assert tested == within | {"report/browser"}


def test_commands_import_nothing_heavy() -> None:
    """In one process, which forgets nothing; what each command adds is told after it."""
    commands = [
        ["--help"],
        ["space", "--help"],
        ["search", "--help"],
        ["study", "--help"],
        ["fit", "--help"],
        ["evaluate", "--help"],
        ["predict", "--help"],
        ["export", "--help"],
        ["report", "--help"],
        ["watch", "--help"],
        ["records", "--help"],
        ["doctor", "--help"],
        ["completion", "bash", "--print"],
        ["__complete", "search", ""],
        ["__complete", "retrain", ""],
        ["space"],
        ["zoo"],
        ["truth", "|none~0|+|none~0|none~1|+|none~0|none~1|none~2|"],
        ["recipes"],
        ["config"],
        ["data"],
        ["study", "baselines-quick", "--list"],
        ["study", "baselines-quick", "--json"],
    ]
    for arguments, loaded in zip(commands, modules_after_each(*commands), strict=True):
        assert "prnas.cli" in loaded
        assert not loaded & {"torch", "numpy", "matplotlib", "lightning_fabric"}, arguments


def test_help_does_not_even_load_the_search_space_or_pydantic() -> None:
    assert not modules_after("--help") & {"prnas.space.genotype", "prnas.config.search", "pydantic"}

"""Doors open one way: space knows nobody, reporting knows space, the commands know all."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import prnas

SOURCE = Path(prnas.__file__).parent
# Who may import whom, by the first word after `prnas.`; what is not listed may import anything.
ALLOWED = {
    "space": {"space"},
    "atomic": set[str](),
    "nets": {"space", "nets"},
    "reporting": {"space", "reporting", "atomic"},
    "yaml_files": {"space"},
    "overrides": {"space", "yaml_files"},
    "config": {"space", "overrides"},
    "retrain_config": {"space", "config"},
    "recipes": {"space", "config", "retrain_config", "yaml_files"},
    "models": {"space", "nets", "models", "atomic", "errors"},
    "training": {
        *("space", "nets", "models", "reporting", "config", "recipes", "training"),
        *("atomic", "errors", "retrain_config", "yaml_files"),
    },
    "handover": {
        *("space", "nets", "models", "training", "reporting", "config", "handover"),
        *("atomic", "errors"),
    },
}


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


def sources() -> list[tuple[str, Path]]:
    parts = [
        (path.relative_to(SOURCE).with_suffix("").parts[0], path) for path in SOURCE.rglob("*.py")
    ]
    return [(room, path) for room, path in parts if room in ALLOWED]


def test_rooms_import_only_what_they_may() -> None:
    assert {room for room, _ in sources()} == set(ALLOWED)
    for room, path in sources():
        for name in imports(path):
            parts = name.split(".")
            if parts[0] == "prnas" and len(parts) > 1:
                assert parts[1] in ALLOWED[room], f"{path} may not import {name}"


def test_space_knows_no_torch() -> None:
    for room, path in sources():
        if room == "space":
            heads = {name.split(".")[0] for name in imports(path)}
            assert not heads & {"torch", "numpy", "matplotlib", "rich", "yaml"}, path


def modules_after(*arguments: str) -> set[str]:
    """What a real process has imported once the command is done."""
    program = (
        "import sys; from prnas.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print('\\n@'.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout
    return set(done.stderr.split("\n@"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["space", "--help"],
        ["search", "--help"],
        ["evaluate", "--help"],
        ["predict", "--help"],
        ["export", "--help"],
        ["report", "--help"],
        ["watch", "--help"],
        ["space"],
        ["zoo"],
        ["recipes"],
        ["config"],
        ["data"],
    ],
    ids=" ".join,
)
def test_commands_import_nothing_heavy(arguments: list[str]) -> None:
    loaded = modules_after(*arguments)
    assert "prnas.cli" in loaded
    assert not loaded & {"torch", "numpy", "matplotlib", "lightning_fabric"}


def test_help_does_not_even_load_the_search_space_or_pydantic() -> None:
    assert not modules_after("--help") & {"prnas.space.genotype", "prnas.config", "pydantic"}

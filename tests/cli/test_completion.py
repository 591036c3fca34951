"""Completion by the shell: a script that a real bash runs, and the names that prnas answers."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from prnas.config import recipes
from prnas.space import zoo
from tests.support.in_process import Cli


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def answers(here: Cli, *words: str) -> list[str]:
    """What prnas proposes for the last word; the shell keeps what begins as it does."""
    lines = here.good("__complete", *words).splitlines()
    return lines[lines.index("\x1fbegin") + 1 :]


def test_names_of_recipes_cells_and_files(here: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").touch()
    (tmp_path / "notes.txt").touch()
    found = tmp_path / "runs" / "first"
    found.mkdir(parents=True)
    (found / "genotype.json").touch()
    assert answers(here, "search", "") == [*recipes.names("search"), "mine.yaml"]
    assert answers(here, "retrain", "") == [*zoo.names(), "runs/first"]
    assert "retrain-quick" in answers(here, "retrain", "darts-v2", "")
    assert "pc-darts" in answers(here, "methods", "")
    assert answers(here, "study", "") == ["baselines-quick", "mine.yaml"]
    sets = ["digits", "cifar10", "cifar100", "fashion-mnist"]
    assert answers(here, "data", "") == [*sets, "folder:", "npz:"]
    assert answers(here, "fit", "") == [*sets, "runs"]
    assert answers(here, "fit", "runs/") == [*sets, "runs/first"]
    assert "darts-like" in answers(here, "space", "no/such/folder/")


def test_a_real_bash_completes(here: Cli, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    script = tmp_path / "script.bash"
    assert here.good("completion", "bash", "-o", str(script)) == f"wrote {script}\n"
    command = tmp_path / "bin" / "prnas"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m prnas "$@"\n')
    command.chmod(0o755)
    program = (
        'source "$1"; shift\n'
        'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))\n'
        "$(complete -p prnas | sed 's/.*-F \\([^ ]*\\) .*/\\1/')\n"
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    path = os.pathsep.join([str(command.parent), os.environ["PATH"]])

    def complete(*words: str) -> list[str]:
        done = subprocess.run(
            [bash, "-c", program, "bash", str(script), "prnas", *words],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PATH": path},
        )
        return done.stdout.split()

    assert complete("ev") == ["evaluate"]
    assert complete("search", "--see") == ["--seed", "--seeds"]
    assert complete("search", "--precision", "bf") == ["bf16-mixed"]
    assert complete("search", "cifar10-") == ["cifar10-small"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_scripts_are_printed(here: Cli, home: Path, shell: str) -> None:
    script = here.good("completion", shell, "--print")
    assert "prnas" in script
    assert "retrain" in script
    assert not home.exists()


def test_it_is_installed_once(here: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASH_VERSION", "5")
    said = here.good("completion")
    script = home / ".local" / "share" / "bash-completion" / "completions" / "prnas"
    assert said.startswith(f"wrote {script}\n")
    assert "_prnas" in script.read_text()
    here.good("completion")
    assert (home / ".bashrc").read_text().count(str(script)) == 2  # in one line: if there, load it


def test_where_it_cannot_be_written(here: Cli, home: Path) -> None:
    home.write_text("a file")
    said = here.bad("completion", "fish")
    assert "cannot write" in said
    assert "`prnas completion fish --print`" in said


def test_mistakes(here: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 'Choose from: "zsh", "bash", "fish", "powershell"' in here.bad("completion", "csh")
    assert "leave out one of them" in here.bad("completion", "bash", "--print", "-o", "a")
    for name in ("BASH_VERSION", "ZSH_VERSION", "FISH_VERSION", "SHELL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "")  # no ps, which would know the parent
    said = here.bad("completion")
    assert "cannot tell which shell is running; name it: bash, zsh, fish, powershell" in said
    assert not home.exists()

"""`prnas doctor`, on the machine that the tests run on."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import prnas
from prnas.runs import examination
from prnas.runs.diagnosis import Torch
from tests.support.in_process import Cli


def test_what_a_person_reads(here: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    shown = here.good("doctor")
    assert shown.startswith(f"prnas {prnas.__version__}\n")
    rows = {line.split("  ")[0]: line for line in shown.splitlines()}
    assert "yes" in rows["required packages"]
    assert "yes" in rows["computing on cpu"]
    assert "~/runs, not there yet, writable" in rows["runs"]
    assert "~/kept" in rows["data"]
    assert "digits in the package; not here, downloaded on first use: cifar10," in rows["images"]
    assert str(tmp_path) not in shown.replace("PRNAS_DATA", "").partition("temporary")[0]
    assert list(tmp_path.iterdir()) == []


def test_json(here: Cli, tmp_path: Path) -> None:
    data = json.loads(here.good("doctor", "--json", "--data-root", str(tmp_path / "images")))
    assert data["prnas"] == prnas.__version__
    assert data["healthy"] is True
    assert {package["name"] for package in data["packages"]} >= {"torch", "cyclopts", "pydantic"}
    assert data["torch"]["devices"][0]["kind"] == "cpu"
    assert [folder["role"] for folder in data["folders"]] == ["runs", "data", "temporary files"]
    assert data["folders"][1]["path"] == str(tmp_path / "images")
    assert data["images"][0] == {"name": "digits", "where": "in the package"}
    assert isinstance(data["advice"], list)


def test_an_ill_machine_has_an_exit_code(here: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = examination.examine(Path("runs"))
    ill = replace(facts, torch=Torch(None, "nothing known", problem="no module named torch"))
    monkeypatch.setattr("prnas.commands.doctor.examine", lambda *_: ill)
    code, out, err = here.run("doctor")
    assert (code, err) == (1, "")
    assert "no module named torch" in out
    assert "PyTorch cannot be imported: install it anew" in out

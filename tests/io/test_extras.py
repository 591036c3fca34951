"""The extras as the code knows them are those of the package."""

import sys
import tomllib
from pathlib import Path

import pytest

import prnas
from prnas.io.extras import EXTRAS, how_to_install

PROJECT = Path(prnas.__file__).parents[2] / "pyproject.toml"


def test_they_are_those_of_the_package() -> None:
    from packaging.requirements import Requirement

    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    declared = {
        name: sorted(Requirement(line).name for line in lines)
        for name, lines in project["optional-dependencies"].items()
        if name not in ("dev", "docs")  # for those who work on prnas
    }
    assert {name: sorted(extra.packages) for name, extra in EXTRAS.items()} == declared


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    assert "onnxscript" in EXTRAS["onnx"].missing
    assert how_to_install("ray") == "pip install ray (the extra 'ray' of prnas)"
    assert how_to_install("onnx", ["onnx"]) == "pip install onnx (the extra 'onnx' of prnas)"

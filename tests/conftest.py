"""Hypothesis: the same examples on every run, and no deadline on machines under load."""

from pathlib import Path

import pytest
from hypothesis import settings

from tests.in_process import Cli

settings.register_profile("prnas", deadline=None, derandomize=True)
settings.load_profile("prnas")


@pytest.fixture
def here(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Cli:
    """The command line in an empty folder, which is also where data sets would be."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRNAS_DATA", str(tmp_path / "kept"))
    return Cli(capsys)

"""A short version of `make torture`: each kind as from the command line."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "arguments",
    [
        ["kills", "--kills", "4", "--seed", "1"],
        pytest.param(["disk", "--rounds", "1", "--seed", "1"], marks=pytest.mark.slow),
        pytest.param(["signals", "--signals", "4", "--seed", "1"], marks=pytest.mark.slow),
    ],
    ids=["kills", "disk", "signals"],
)
def test_as_promised(arguments: list[str]) -> None:
    name, *options = arguments
    done = subprocess.run(
        [sys.executable, "-m", f"torture.{name}", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all as promised" in done.stdout

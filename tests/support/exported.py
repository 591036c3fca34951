"""The page on exports, and processes that know nothing of this project."""

import os
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "export.md"


def elsewhere(program: str, folder: Path, *arguments: str) -> str:
    """A fresh process in `folder`, with nothing of this project on its path."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout

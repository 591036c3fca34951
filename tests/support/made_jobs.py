"""Jobs of a moment, real processes instead of searches, for the engines of studies."""

import sys
import time
from pathlib import Path

from prnas.studies.attempt import Ended, Slot, Task
from prnas.studies.engines import Engine

TIMEOUT = 60
HERE = Slot("here", {"PLACE": "here"})
# Waits for the end of its standard input, as jobs do, and then saves what it has.
PATIENT = (
    "import pathlib, sys\n"
    "pathlib.Path('begun').touch()\n"
    "sys.stdin.read()\n"
    "pathlib.Path('saved').touch()\n"
    "sys.exit(143)"
)


def task(folder: Path, code: str, number: int = 1) -> Task:
    """A job of a row `r` whose program is Python code, run in the study's folder."""
    (folder / "r").mkdir(exist_ok=True)
    program = (sys.executable, "-c", f"import os; os.chdir({str(folder)!r})\n{code}")
    lock = folder / "r" / f".{number}.lock"
    return Task(number, f"r/{number}", folder, lock, ("new",), ("again",), "", program)


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def all_ended(engine: Engine, number: int) -> list[Ended]:
    ended: list[Ended] = []
    deadline = time.monotonic() + TIMEOUT
    while len(ended) < number:
        assert time.monotonic() < deadline
        ended += engine.wait(0.1)
    return ended

"""SIGKILL at random moments, over whole searches and trainings, until every run is done.

python -m torture.kills [--kills 200] [--seed N]

Kills come after a random time; at a random sync or rename of a file, which is in the midst of
writing a checkpoint, a genotype, a model or the report; or with a record half written.
"""

import json
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from prnas.runs.integrity import newest_state
from prnas.runs.run import Run
from tests.support.watching import assert_same_run
from torture.children import Child, kill_at_call, kill_in_record
from torture.small_runs import Kind, kinds
from torture.torturer import torturer

LONGEST = 2.5  # seconds until a kill


def torture(folder: Path, random: Random, kills: int) -> dict[str, Any]:
    """So many kills; raises if a run does not end as its undisturbed one did."""
    counts = Counter[str]()
    both = kinds(folder)
    while counts["kills"] < kills or counts["runs"] < len(both):
        kind = both[counts["runs"] % len(both)]
        run = folder / "runs" / f"run-{counts['runs']}"
        way, child = _disturbed(kind, run, random)
        while child.wait() != 0:
            assert child.code == -9, f"exit code {child.code}:\n{child.said}"
            counts["kills"] += 1
            counts[f"  {way}"] += 1
            saved = _position(run)
            way, child = _disturbed(kind, run, random)
            child.wait()
            _check_repeated(child, run, saved)
        assert_same_run(run, kind.reference)
        counts["runs"] += 1
    return dict(counts)


def _disturbed(kind: Kind, run: Path, random: Random) -> tuple[str, Child]:
    """A session that may be killed on its way, and how."""
    way = random.choice(["after a time", "after a time", "at a file", "in a record"])
    steps = run.with_name(run.name + "-steps.txt")
    steps.unlink(missing_ok=True)
    number = random.randint(1, 60 if way == "at a file" else 4)

    def prepare() -> None:
        if way != "after a time":
            (kill_at_call if way == "at a file" else kill_in_record)(number)()
        _log_steps(steps)

    begun = (run / "records.jsonl").is_file()
    if run.exists() and not begun:
        run.rename(run.with_name(run.name + f"-never-begun-{time.monotonic_ns()}"))
    child = kind.go_on(run, prepare) if begun else kind.begin(run.name, prepare)
    if way == "after a time":
        end = time.monotonic() + random.uniform(0, LONGEST)
        while child.poll() is None and time.monotonic() < end:
            time.sleep(0.001)
        child.kill()
    return way, child


def _log_steps(path: Path) -> None:
    """In the child: note every step that it takes."""
    real = Run.train_epoch

    def train_epoch(self: Any) -> None:
        take = self.take_step

        def take_step() -> None:
            position = self.state.position
            with path.open("a") as file:
                file.write(json.dumps([position.cycle, position.epoch, position.step]) + "\n")
            take()

        self.take_step = take_step
        try:
            real(self)
        finally:
            del self.take_step

    Run.train_epoch = train_epoch


def _position(run: Path) -> list[int] | None:
    position = newest_state(run).get("position")
    return None if position is None else [position["cycle"], position["epoch"], position["step"]]


def _check_repeated(child: Child, run: Path, saved: list[int] | None) -> None:
    """No step before the newest checkpoint is taken again."""
    steps = run.with_name(run.name + "-steps.txt")
    if saved is None or not steps.exists():
        return
    first = json.loads(steps.read_text().splitlines()[0])
    assert first >= saved, f"went on at {first}, though {saved} was saved:\n{child.said}"


if __name__ == "__main__":
    torturer(__doc__, torture, kills=200)

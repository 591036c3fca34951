"""A disk that fills up, is read-only, or is taken away; a clock that jumps back; two at once.

python -m torture.disk [--rounds 10] [--seed N]

Full and read-only disks are small file systems in memory, which only an administrator of a Linux
machine can mount; elsewhere those two are skipped, and it says so.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from tests.support.real_processes import progress_of
from tests.support.watching import assert_same_run
from torture.children import Child
from torture.small_runs import COMMANDS, Kind, kinds
from torture.torturer import torturer


def torture(folder: Path, random: Random, rounds: int) -> dict[str, Any]:
    """Every fault `rounds` times, alternating between searches and trainings."""
    counts = Counter[str]()
    both = kinds(folder, commands=COMMANDS[:rounds])
    faults = [deleted, rotated, clock, race]
    if can_mount():
        faults += [full, read_only]
    else:
        counts["skipped, for want of a right to mount: full, read-only"] = rounds
    for number in range(rounds):
        kind = both[number % len(both)]
        for fault in faults:
            fault(kind, folder / "runs" / f"{fault.__name__}-{number}", random)
            counts[fault.__name__.replace("_", "-")] += 1
    return dict(counts)


def can_mount() -> bool:
    return sys.platform == "linux" and os.geteuid() == 0 and shutil.which("mount") is not None


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[None]:
    """A file system of its own, of a given size."""
    folder.mkdir(parents=True)
    _mount("-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder))
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)  # noqa: S607


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)  # noqa: S607


def grow(folder: Path, kilobytes: int) -> None:
    _mount("-o", f"remount,size={kilobytes}k", str(folder))


def refused(child: Child, *words: str) -> str:
    """What it said when it ended with exit code 2, and no traceback."""
    assert child.wait() == 2, f"exit code {child.code}:\n{child.said}"
    said = " ".join(child.said.split())
    assert "Traceback" not in said, child.said
    assert said.count("prnas: ") >= 1, child.said
    assert all(word in said for word in words), child.said
    return said


def full(kind: Kind, run: Path, random: Random) -> None:
    """The disk fills up on the way; with space again, the run goes on."""
    size, times = random.randint(20, 400), 0
    with small_disk(run, size):
        child = kind.begin("run", lambda: None, "--runs", run)
        while child.wait() != 0:
            refused(child, "No space left on device")
            times += 1
            size += random.randint(20, 400)  # some more space, which may not suffice either
            grow(run, size)
            if (run / "run" / "records.jsonl").is_file():
                child = kind.go_on(run / "run")
            else:  # not even its folder could be made
                shutil.rmtree(run / "run", ignore_errors=True)
                child = kind.begin("run", lambda: None, "--runs", run)
        assert times, "it was never full"
        assert_same_run(run / "run", kind.reference)


def read_only(kind: Kind, run: Path, random: Random) -> None:
    """Nothing can be written: one message at once; later, the run goes on."""
    with small_disk(run, 100_000):
        child = kind.begin("run", lambda: None, "--runs", run)
        stop_after(child, run / "run", random.randint(2, 8))
        _mount("-o", "remount,ro", str(run))
        refused(kind.go_on(run / "run"), "Read-only file system")
        refused(kind.begin("other", lambda: None, "--runs", run), "Read-only file system")
        _mount("-o", "remount,rw", str(run))
        child = kind.go_on(run / "run")
        assert child.wait() == 0, child.said
        assert_same_run(run / "run", kind.reference)


def deleted(kind: Kind, run: Path, random: Random) -> None:
    """The run's folder goes away under it: a message, and nothing of it comes back."""
    child = kind.begin(run.name)
    wait_for(child, run, random.randint(1, 8))
    away = run.with_name(run.name + "-away")
    run.rename(away)  # at once, as a deletion within one file system is not
    if child.wait() != 0:
        refused(child, "no longer there")
        assert not run.exists()
    child = kind.go_on(away)
    assert child.wait() == 0, child.said
    assert_same_run(away, kind.reference)


def rotated(kind: Kind, run: Path, random: Random) -> None:
    """The records are moved away: a message, and they are written anew."""
    child = kind.begin(run.name)
    wait_for(child, run, random.randint(1, 6))
    (run / "records.jsonl").rename(run / "records.jsonl.1")
    assert child.wait() == 0, child.said
    assert "written anew" in " ".join(child.said.split()), child.said
    assert_same_run(run, kind.reference)


def clock(kind: Kind, run: Path, random: Random) -> None:
    """The clock jumps back and forth while it runs, and in the session after a stop."""

    def prepare() -> None:
        real, jumps = time.time, Random(random.random())
        time.time = lambda: real() + jumps.uniform(-1e6, 1e6)

    child = kind.begin(run.name, prepare)
    stop_after(child, run, random.randint(2, 8))
    child = kind.go_on(run, prepare)
    assert child.wait() == 0, child.said
    assert_same_run(run, kind.reference)


def race(kind: Kind, run: Path, random: Random) -> None:
    """Several processes want one run: one gets it, the others say so."""
    child = kind.begin(run.name)
    stop_after(child, run, random.randint(2, 8))
    rivals = [kind.go_on(run) for _ in range(3)]
    codes = sorted(child.wait() for child in rivals)
    assert codes[0] == 0, codes
    assert set(codes) <= {0, 2}, codes  # one that comes late finds it done
    for child in rivals:
        if child.code == 2:
            refused(child, "another process is running in")
    assert_same_run(run, kind.reference)


def wait_for(child: Child, run: Path, checkpoints: int) -> None:
    """Until there were so many checkpoints."""
    while progress_of(run) < checkpoints:
        assert child.poll() is None or progress_of(run) >= checkpoints, child.said
        time.sleep(0.002)


def stop_after(child: Child, run: Path, checkpoints: int) -> None:
    wait_for(child, run, checkpoints)
    child.send(signal.SIGTERM)
    assert child.wait() in (0, 143), child.said


if __name__ == "__main__":
    torturer(__doc__, torture, rounds=10)

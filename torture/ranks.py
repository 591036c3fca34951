"""One of two processes killed or stalled at random moments.

    python -m torture.ranks [--seed N] [--rounds 10]

The other must end by itself, in bounded time, with one message and no traceback; the newest
checkpoint must be whole; and the run must go on with one process or two: with two, to the very bits
of a run that nobody disturbed.
"""

import argparse
import os
import random
import secrets
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

from prnas.io.yaml_files import dump_yaml
from prnas.runs.checkpoint import Checkpoints
from prnas.runs.integrity import newest_state
from tests.support import warm
from tests.support.real_processes import progress_of
from tests.support.settings import small_config, write_images
from tests.support.watching import assert_same_run

TWO = ("--devices", "2", "--accelerator", "cpu")
PATIENCE = 120.0  # seconds for anything that must end


@dataclass(frozen=True)
class Blow:
    """What is done to which process, and when: after so many checkpoints and seconds."""

    rank: int
    kind: signal.Signals  # SIGKILL or SIGSTOP
    checkpoints: int
    seconds: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """How the survivor ended. `code` is known of the first process only."""

    seconds: float
    code: int | None
    said: str
    moment: str


class Program:
    """A run of two processes."""

    def __init__(self, arguments: list[str], cwd: Path) -> None:
        self.process = warm.start("-m", "prnas", *arguments, cwd=cwd)

    def ranks(self) -> dict[int, psutil.Process]:
        """The processes that are there, by rank."""
        ranks: dict[int, psutil.Process] = {}
        own = psutil.Process(self.process.pid)
        for process in [own, *own.children(recursive=True)]:
            try:
                rank = process.environ().get("LOCAL_RANK", "0" if process == own else None)
            except psutil.Error:
                continue
            if rank is not None:
                ranks.setdefault(int(rank), process)
        return ranks

    def said(self) -> str:
        return self.process.error


def disturb(arguments: list[str], cwd: Path, run: Path, blow: Blow) -> Outcome | None:
    """Start a run, strike, and see the other process off; `None` if the run was done before."""
    program = Program([*arguments, *TWO], cwd)
    main = program.process
    deadline = time.monotonic() + PATIENCE
    while progress_of(run) < blow.checkpoints or len(program.ranks()) < 2:
        if main.poll() is not None:
            assert main.returncode == 0, program.said()
            return None
        assert time.monotonic() < deadline, "no progress"
        time.sleep(0.01)
    time.sleep(blow.seconds)
    ranks = program.ranks() if main.poll() is None else {}
    if len(ranks) < 2:
        assert main.wait(PATIENCE) == 0, program.said()
        return None
    victim, survivor = ranks[blow.rank], ranks[1 - blow.rank]
    moment = f"after checkpoint {progress_of(run)}"
    start = time.monotonic()
    victim.send_signal(blow.kind)
    try:
        _wait_for(survivor, main)
        seconds = time.monotonic() - start
        if blow.rank == 0:
            if blow.kind == signal.SIGSTOP:
                victim.send_signal(signal.SIGCONT)  # awake again, it finds itself alone
            main.wait(PATIENCE)
        _wait_for(ranks[1], main)  # nothing stays behind
    finally:
        for process in ranks.values():
            if process.is_running():
                process.kill()
        main.wait()
    return Outcome(seconds, main.returncode, program.said(), moment)


def _wait_for(process: psutil.Process, main: warm.WarmProcess) -> None:
    deadline = time.monotonic() + PATIENCE
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        main.poll()
        assert time.monotonic() < deadline, f"process {process.pid} did not end"
        time.sleep(0.02)


def check_words(outcome: Outcome, blow: Blow) -> None:
    """One message of each process that was there to say something, and nothing else."""
    lines = [line for line in outcome.said.splitlines() if line.startswith("prnas: ")]
    speakers = 2 if (blow.rank, blow.kind) == (0, signal.SIGSTOP) else 1
    assert 1 <= len(lines) <= speakers, outcome.said
    assert "Traceback" not in outcome.said, outcome.said
    assert f"process {blow.rank} " in lines[0], outcome.said
    if blow.rank == 1:
        assert outcome.code == 2, outcome.code


def resume(run: Path, processes: int) -> None:
    words = ("search", "--resume", str(run), "--devices", str(processes))
    process = warm.start("-m", "prnas", *words)
    assert process.wait(PATIENCE) == 0, process.error


def check_whole(run: Path) -> None:
    checkpoint, problems = Checkpoints(run / "checkpoints", 2).newest()
    assert checkpoint is not None
    assert not problems, problems


def write_recipe(folder: Path, seconds: float) -> Path:
    """A small search, saved at every step, whose processes wait so long for each other."""
    images = write_images(folder / "images.npz")
    config = small_config(
        images,
        checkpoints={"every_minutes": 1e-6},
        compute={"accelerator": "cpu", "threads": 1, "timeout_minutes": seconds / 60},
    )
    path = folder / "small.yaml"
    path.write_text(dump_yaml(config.to_data()), encoding="utf-8")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--timeout", type=float, default=6.0, help="seconds that processes wait")
    wanted = parser.parse_args()
    print(f"a process that is killed or stalled. seed {wanted.seed}", flush=True)
    chance = random.Random(wanted.seed)
    seconds: dict[str, list[float]] = {"SIGKILL": [], "SIGSTOP": []}
    resumed = {1: 0, 2: 0}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recipe = write_recipe(folder, wanted.timeout)
        arguments = ["search", str(recipe), "--quiet", "--runs", str(folder)]
        undisturbed = Program([*arguments, "--name", "whole", *TWO], folder)
        assert undisturbed.process.wait(PATIENCE) == 0, undisturbed.said()
        most = progress_of(folder / "whole")
        for number in range(wanted.rounds):
            run = folder / f"run-{number}"
            kind = chance.choice([signal.SIGKILL, signal.SIGSTOP])
            blow = Blow(
                rank=chance.randrange(2),
                kind=kind,
                # 0: while the processes start, for which they have ten minutes.
                checkpoints=chance.randrange(int(kind == signal.SIGSTOP), most),
                seconds=chance.uniform(0, 0.5),
            )
            outcome = disturb([*arguments, "--name", run.name], folder, run, blow)
            if outcome is None:
                print(f"round {number}: done before it was struck", flush=True)
                continue
            # One that has done its part has nothing to say of the other, which only writes files;
            # it may still have notes on the search that it has done.
            if "prnas: " in outcome.said or not newest_state(run)["position"]["done"]:
                check_words(outcome, blow)
            seconds[blow.kind.name].append(outcome.seconds)
            processes = chance.choice([1, 2])
            what = f"{blow.kind.name} to process {blow.rank} {outcome.moment}"
            if progress_of(run):
                check_whole(run)
                resume(run, processes)
                resumed[processes] += 1
                if processes == 2:
                    assert_same_run(run, folder / "whole")
                what += f"; resumed with {processes}"
            print(f"round {number}: {what}; survivor {outcome.seconds:.1f} s", flush=True)
    for kind, taken in seconds.items():
        if taken:
            print(
                f"{kind}: n = {len(taken)}, the survivor ended after {median(taken):.1f} s "
                f"(median), {max(taken):.1f} s (greatest)"
            )
    print(f"resumed with one process: {resumed[1]}, with two, to the same bits: {resumed[2]}")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()

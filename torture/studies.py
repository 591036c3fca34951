"""Studies whose jobs, engine and own process are killed at random, until all is done.

python -m torture.studies [--kills 60] [--seed N] [--most 8] [--engines 4] [--rows 2]

Studies run by turns on the local engine, on a Ray cluster, on the local engine again, and on a Ray
of their own; with `--engines 1`, on the first only, and without Ray as well, which is said. Each
suffers at most so many kills (`--most`), then it is left alone to end. With `--rows 1` they have a
single training. Every run must equal that of a study that nobody disturbed; no folder may ever
have two processes; what was done stays untouched; at last no process is left.
"""

import importlib.util
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import psutil

from prnas.io.yaml_files import dump_yaml
from prnas.runs.names import LOCK
from prnas.studies.folder import read_plan
from prnas.studies.states import read_states
from tests.support.make_runs import SEARCH, TRAINING
from tests.support.ray_cluster import ray_cluster
from tests.support.watching import assert_same_run
from torture.children import Child, start
from torture.torturer import torturer

PATIENCE = 300.0  # seconds for anything that must end
LOOK, LOOK_AGAIN = 0.1, 0.4  # seconds between looks at jobs, and at other processes
Files = dict[str, tuple[int, int, int]]


def torture(
    folder: Path, random: Random, kills: int, most: int, engines: int, rows: int
) -> dict[str, Any]:
    """So many kills; raises if a study does not end as the undisturbed one did."""
    counts = Counter[str]()
    write_study(folder, rows)
    undisturbed = start(["study", "tiny.yaml", "--name", "whole", "--quiet"], folder)
    began = time.monotonic()
    assert undisturbed.wait(PATIENCE) == 0, undisturbed.said
    longest = time.monotonic() - began
    with ExitStack() as stack:
        choice = [["local"]]
        if engines == 1:
            pass
        elif importlib.util.find_spec("ray") is None:
            print("  without Ray, which is not installed", flush=True)
        else:
            address, key = stack.enter_context(ray_cluster())
            os.environ.update(key)
            choice += [["ray", "--address", address], ["local"], ["ray"]][: engines - 1]
        while counts["kills"] < kills:
            engine = choice[counts["studies"] % len(choice)]
            study = folder / "runs" / f"study-{counts['studies']}"
            number = min(random.randint(most // 2, most), kills - counts["kills"])
            with watched(study) as watch:
                Victim(study, engine, watch, random, counts, longest).suffer(number)
            compare(folder, study)
            counts["studies"] += 1
            counts[f"  {_name(engine)}"] += 1
            print(f"  {_name(engine)}: as promised; {counts['kills']} kills so far", flush=True)
    return dict(counts)


def write_study(folder: Path, number: int) -> None:
    often = {"checkpoints": {"every_minutes": 1e-6, "keep": 2}}
    training = {**TRAINING, **often, "training": {"epochs": 2, "warmup_epochs": 1}}
    (folder / "search.yaml").write_text(dump_yaml({**SEARCH, **often}))
    (folder / "training.yaml").write_text(dump_yaml(training))
    rows = [{"name": "c", "cell": "darts-v2"}, {"name": "s", "search": "search.yaml"}]
    study = {"rows": rows[:number], "seeds": 1, "retrain": "training.yaml", "slots": 2}
    study["resources"] = {"memory": 4.0}
    (folder / "tiny.yaml").write_text(dump_yaml(study))


def compare(folder: Path, study: Path) -> None:
    """Each run with that of the study that nobody disturbed, bit for bit."""
    plan = read_plan(study)
    for job in plan.jobs:
        assert_same_run(study / job.path, folder / "runs" / "whole" / job.path)


# ---------------------------------------------------------------- who is there


class Watch(threading.Thread):
    """Looks at the processes of a study's jobs again and again."""

    def __init__(self, study: Path) -> None:
        super().__init__(daemon=True)
        self.lock = threading.Lock()  # held while a process is forked
        self.twice: list[str] = []
        self.looks = 0
        self._study, self._over = study, threading.Event()

    def run(self) -> None:
        while not self._over.wait(LOOK):
            with self.lock:
                self._look()

    def _look(self) -> None:
        self.looks += 1
        there = jobs_of(self._study)
        own = {job.pid for job, _ in there}
        # A process that a job forks looks like itself for a moment.
        runs = Counter(run for job, run in there if _parent(job) not in own)
        self.twice += [run for run, number in runs.items() if number > 1]

    def end(self) -> None:
        self._over.set()
        self.join()


@contextmanager
def watched(study: Path) -> Iterator[Watch]:
    watch = Watch(study)
    watch.start()
    try:
        yield watch
    finally:
        watch.end()
    assert not watch.twice, f"several processes at once in {set(watch.twice)}"
    assert watch.looks


def jobs_of(
    study: Path, among: Iterable[psutil.Process] | None = None
) -> list[tuple[psutil.Process, str]]:
    """The processes of a study's jobs, with the folder of each one's run."""
    jobs: list[tuple[psutil.Process, str]] = []
    for process in psutil.process_iter() if among is None else among:
        with suppress(psutil.Error):
            words = process.cmdline()
            if "prnas" not in words or not any(str(study) in word for word in words):
                continue
            if "--resume" in words:
                jobs.append((process, words[words.index("--resume") + 1]))
            elif "--runs" in words:
                row, name = (words[words.index(key) + 1] for key in ("--runs", "--name"))
                jobs.append((process, f"{row}/{name}"))
    return jobs


def _parent(process: psutil.Process) -> int | None:
    with suppress(psutil.Error):
        return process.ppid()
    return None


def alive(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


# ---------------------------------------------------------------- a study that suffers


class Victim:
    """A study, started again and again until it is done."""

    def __init__(
        self,
        study: Path,
        engine: list[str],
        watch: Watch,
        random: Random,
        counts: Counter[str],
        longest: float,
    ) -> None:
        self.study, self.engine, self.watch = study, engine, watch
        self.random, self.counts, self.longest = random, counts, longest
        self.done: dict[str, Files] = {}
        self.started: set[psutil.Process] = set()  # by the study, but for jobs
        self.lost = False  # the process that speaks to Ray, in this session

    def suffer(self, kills: int) -> None:
        """So many kills at most, then in peace to the end."""
        while True:
            child = self.begin()
            while kills and not self.ended(child, self.random.uniform(0.3, 0.3 * self.longest)):
                if self.random.random() < 0.75:  # Else also while everything starts.
                    self.wait_for_jobs(child)
                kills -= self.strike(child)
            end = time.monotonic() + PATIENCE
            while not self.ended(child, 1.0):
                assert time.monotonic() < end, f"still running:\n{child.said}"
            self.check_code(child)
            if child.code == 0:
                break
            if self.random.random() < 0.5:
                self.wait_until_gone()  # else the next session begins beside its remains
        self.wait_until_gone()
        self.look_at_done(last=True)

    def begin(self) -> Child:
        self.lost = False
        words = ["study", "tiny.yaml", "--name", self.study.name, "--engine", *self.engine]
        with self.watch.lock:
            return start([*words, "--quiet"], self.study.parents[1])

    def ended(self, child: Child, seconds: float) -> bool:
        """Whether a session ends within so many seconds."""
        end = time.monotonic() + seconds
        while child.poll() is None and time.monotonic() < end:
            with suppress(psutil.Error):
                there = set(psutil.Process(child.pid).children(recursive=True))
                self.started |= there - {job for job, _ in jobs_of(self.study, there)}
            time.sleep(LOOK_AGAIN)
        self.look_at_done()
        return child.poll() is not None

    def wait_for_jobs(self, child: Child) -> None:
        end = time.monotonic() + self.longest
        while not jobs_of(self.study) and time.monotonic() < end:
            if self.ended(child, LOOK):
                return

    def strike(self, child: Child) -> int:
        """Kill someone; 0 if nobody was there."""
        if child.poll() is not None:
            return 0
        jobs = [job for job, _ in jobs_of(self.study)]
        workers: list[psutil.Process] = []
        for job in jobs:
            with suppress(psutil.Error):
                parent = job.parent()
                if parent is not None and parent.name().startswith("ray::"):
                    workers.append(parent)
        drivers = [process for process in self.started if alive(process) and _is_driver(process)]
        kinds = {"jobs": jobs, "Ray workers": workers, "Ray drivers": drivers}
        kinds["studies"] = [psutil.Process(child.pid)]
        kind = self.random.choice([name for name, there in kinds.items() if there])
        victim = self.random.choice(kinds[kind])
        try:
            victim.send_signal(signal.SIGKILL)
        except psutil.Error:
            return 0
        self.lost = self.lost or kind == "Ray drivers"
        self.counts["kills"] += 1
        self.counts[f"  {kind} on {_name(self.engine)}"] += 1
        return 1

    def check_code(self, child: Child) -> None:
        """0: all is done; 1: a job was given up, killed three times; 2: Ray was lost."""
        assert child.code in (0, 1, 2, -signal.SIGKILL), f"code {child.code}:\n{child.said}"
        assert "Traceback" not in child.said, child.said
        if child.code == 2:
            assert self.lost, child.said
            messages = ("was lost", "cannot use a Ray", "cannot use the Ray")
            assert any(words in child.said for words in messages), child.said
        if child.code == 1:
            assert "3 attempts made no progress" in child.said, child.said

    def look_at_done(self, last: bool = False) -> None:
        """What is done is not touched again."""
        if not (self.study / "study.json").is_file():
            return
        plan = read_plan(self.study)
        states = read_states(self.study, plan)
        for job in plan.jobs:
            if states[job.number].state == "done":
                files = files_of(self.study / job.path)
                before = self.done.setdefault(job.path, files)
                assert before == files, f"{job.path} was done, and was touched"
            else:
                assert not last, f"{job.path}: {states[job.number]}"
                assert job.path not in self.done or states[job.number].state == "running"

    def wait_until_gone(self) -> None:
        end = time.monotonic() + PATIENCE
        while left := [process for process in self.started if alive(process)] + jobs_of(self.study):
            assert time.monotonic() < end, f"left over: {left}"
            time.sleep(LOOK)


def files_of(run: Path) -> Files:
    """What would change if anything were written."""
    files: Files = {}
    for path in sorted(run.rglob("*")):
        if path.is_file() and path.name != LOCK:
            stat = path.stat()
            files[str(path.relative_to(run))] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    return files


def _is_driver(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return "prnas.studies.ray_driver" in process.cmdline()
    return False


def _name(engine: list[str]) -> str:
    if engine[0] == "local":
        return "the local engine"
    return "a Ray cluster" if len(engine) > 1 else "a Ray of their own"


if __name__ == "__main__":
    torturer(__doc__, torture, kills=60, most=8, engines=4, rows=2)

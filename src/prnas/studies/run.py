"""A study goes on: jobs are started until all are done, or a signal asks to stop."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from prnas.runs.names import GENOTYPE
from prnas.runs.signals import Signals, stop_signals
from prnas.studies.attempt import Ended, Slot, Task
from prnas.studies.engines import Engine
from prnas.studies.folder import genotype_file
from prnas.studies.locks import lock_file
from prnas.studies.machine import Share
from prnas.studies.names import RETRAIN, SEARCH
from prnas.studies.plan import Job, Plan
from prnas.studies.queue import JobQueue
from prnas.studies.states import JobState, read_state, read_states

_TICK = 0.2  # Seconds after which signals and the display get their turn.


class Watcher:
    """Sees a study go on, and changes nothing. Override what you need."""

    def on_start(self, plan: Plan, states: dict[int, JobState]) -> None: ...

    def on_job(self, job: Job, slot: Slot | None) -> None:
        """An attempt at a job was started."""

    def on_job_end(self, job: Job, ended: Ended, state: JobState, failure: str) -> None:
        """An attempt has ended. `failure`: why the job is given up, if it is."""

    def on_tick(self) -> None:
        """Some time has passed."""

    def on_stop(self) -> None:
        """A signal came: what is under way saves and ends."""

    def close(self) -> None: ...


class Watchers(Watcher):
    """Several watchers, called in their order."""

    def __init__(self, *watchers: Watcher) -> None:
        self._watchers = watchers

    def on_start(self, plan: Plan, states: dict[int, JobState]) -> None:
        for watcher in self._watchers:
            watcher.on_start(plan, states)

    def on_job(self, job: Job, slot: Slot | None) -> None:
        for watcher in self._watchers:
            watcher.on_job(job, slot)

    def on_job_end(self, job: Job, ended: Ended, state: JobState, failure: str) -> None:
        for watcher in self._watchers:
            watcher.on_job_end(job, ended, state, failure)

    def on_tick(self) -> None:
        for watcher in self._watchers:
            watcher.on_tick()

    def on_stop(self) -> None:
        for watcher in self._watchers:
            watcher.on_stop()

    def close(self) -> None:
        for watcher in self._watchers:
            watcher.close()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a study, or of the chosen jobs of it."""

    states: dict[int, JobState]
    failed: dict[int, str]
    signal: int = 0  # The signal that stopped it.


def run_study(
    folder: Path,
    plan: Plan,
    share: Share,
    engine: Engine,
    watcher: Watcher,
    numbers: Sequence[int] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Run the jobs that are not done, all of them or those of these `numbers`."""
    states = read_states(folder, plan, locks=False)
    jobs = {job.number: job for job in plan.jobs if numbers is None or job.number in numbers}
    queue = JobQueue(jobs, states)
    watcher.on_start(plan, states)
    stopping = False
    with stop_signals() as signals:
        try:
            while queue.under_way or (queue.unfinished and not signals.number):
                if signals.number and not stopping:
                    stopping = True
                    watcher.on_stop()
                    engine.stop()
                _start_jobs(folder, plan, share, engine, queue, watcher, signals, clock)
                for ended in engine.wait(_TICK):
                    _end_job(folder, plan, queue, ended, watcher, clock)
                watcher.on_tick()
        finally:
            engine.close()
            watcher.close()
    return Outcome(queue.states, queue.failed, signals.number)


def _start_jobs(
    folder: Path,
    plan: Plan,
    share: Share,
    engine: Engine,
    queue: JobQueue,
    watcher: Watcher,
    signals: Signals,
    clock: Callable[[], float],
) -> None:
    while not signals.number and len(queue.under_way) < engine.num_slots:
        job = queue.next(clock())
        if job is None:
            return
        needed = None if job.needs is None else queue.states[job.needs]
        state = read_state(folder, plan, job, needed, locks=False)
        queue.states[job.number] = state
        if state.state == "done":  # Another process has done it meanwhile.
            _see_cells(folder, plan, queue, job)
            continue
        slot = engine.start(task_of(folder, plan, job, share, queue.states))
        queue.started(job)
        watcher.on_job(job, slot)


def _end_job(
    folder: Path,
    plan: Plan,
    queue: JobQueue,
    ended: Ended,
    watcher: Watcher,
    clock: Callable[[], float],
) -> None:
    job = queue.jobs[ended.task.number]
    needed = None if job.needs is None else queue.states[job.needs]
    state = read_state(folder, plan, job, needed, locks=False)
    queue.ended(ended, state, clock())
    if state.state == "done":
        _see_cells(folder, plan, queue, job)
    watcher.on_job_end(job, ended, state, queue.failed.get(job.number, ""))


def _see_cells(folder: Path, plan: Plan, queue: JobQueue, search: Job) -> None:
    """Look at the trainings anew that waited for a search."""
    for number, other in queue.jobs.items():
        if other.needs == search.number:
            cells = queue.states[search.number]
            queue.states[number] = read_state(folder, plan, other, cells, locks=False)


def task_of(folder: Path, plan: Plan, job: Job, share: Share, states: dict[int, JobState]) -> Task:
    """The command of a job. One that goes on keeps what it was started with, to the bit."""
    row = folder / job.row.name
    run = row / job.name
    if job.task == "search":
        what, config = [str(row / SEARCH)], job.row.config
    else:
        cells = genotype_file(folder, job.row, job.unit)
        if job.needs is not None:
            cells = row / f"seed-{job.unit}" / GENOTYPE
        what, config = [str(cells), str(folder / RETRAIN)], plan.retrain
    assert config is not None
    options = ["--seed", str(job.seed), "--runs", str(row), "--name", job.name]
    options += ["--threads", str(share.threads)]
    if share.memory is not None:
        options += ["--memory-limit", f"{share.memory:g}"]
    if not share.gpus and config.compute.accelerator == "auto":
        options += ["--accelerator", "cpu"]
    elif share.gpus > 1:
        options += ["--devices", f"{share.gpus:g}"]
    genotype = states[job.number].genotype
    return Task(
        job.number,
        job.path,
        folder,
        lock_file(folder, job.path),
        (job.task, *what, *options, "--quiet"),
        (job.task, "--resume", str(run), "--quiet"),
        plan.config_digest(job, genotype),
    )

"""The estimate of a study's time: from what its runs took, else from measured steps. Light."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from prnas.config.sections import RunConfig
from prnas.io.errors import UserError
from prnas.studies.plan import Plan
from prnas.studies.states import JobState

START_UP = 4.0  # Seconds that a process needs before its first step.
Key = tuple[str, Literal["search", "retrain"]]  # A row, and which of its jobs.


@dataclass(frozen=True)
class Estimate:
    """Seconds of a job, by row and task; and of all that is left, on the given slots."""

    of_job: Mapping[Key, float]
    left: float | None  # `None`: something could not be measured.
    problems: tuple[str, ...] = ()


def estimate(
    plan: Plan,
    states: Mapping[int, JobState],
    slots: int,
    measure: Callable[[RunConfig], float],
) -> Estimate:
    """`measure` gives the seconds of a run by its config; it is called only where none is done."""
    of_job = mean_seconds(plan, states)
    problems: dict[str, list[str]] = {}  # A message, and the rows that it is about.
    for row in plan.rows:
        tasks: list[tuple[Key, RunConfig | None]] = []
        if row.kind == "search":
            tasks.append(((row.name, "search"), row.config))
        if plan.retrain is not None:
            cells = row.genotype(plan.study.first_seed)
            config = plan.retrain
            if cells is not None:
                config = config.model_copy(update={"genotype": cells})
            tasks.append(((row.name, "retrain"), config))
        for key, config in tasks:
            if key in of_job or config is None:
                continue
            try:
                of_job[key] = measure(config)
            except UserError as error:
                names = problems.setdefault(str(error), [])
                names.extend([row.name] if row.name not in names else [])
    left = None if problems else seconds_left(plan, states, slots, of_job)
    return Estimate(
        of_job, left, tuple(f"{_rows(names)}: {said}" for said, names in problems.items())
    )


def _rows(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"row '{names[0]}'"
    return f"rows {', '.join(repr(name) for name in names[:-1])} and {names[-1]!r}"


def mean_seconds(plan: Plan, states: Mapping[int, JobState]) -> dict[Key, float]:
    """The mean seconds of the jobs that are done."""
    done: dict[Key, list[float]] = {}
    for job in plan.jobs:
        state = states[job.number]
        if state.state == "done" and state.seconds is not None:
            done.setdefault((job.row.name, job.task), []).append(state.seconds + START_UP)
    return {key: fmean(values) for key, values in done.items()}


def seconds_left(
    plan: Plan,
    states: Mapping[int, JobState],
    slots: int,
    of_job: Mapping[Key, float],
    under_way: Sequence[tuple[int, float]] = (),
) -> float | None:
    """The seconds of all jobs that are not done; `under_way`: number and seconds of running ones.

    `None` if there is a kind of job of which nothing is known.
    """
    free = [0.0] * slots
    ready: dict[int, float] = {}
    spent = dict(under_way)
    for job in plan.jobs:  # In the order in which they are started.
        if states[job.number].state == "done":
            continue
        seconds = of_job.get((job.row.name, job.task))
        if seconds is None:
            return None
        done = states[job.number].seconds or 0.0
        seconds = max(seconds - max(done, spent.get(job.number, 0.0)), 0.0)
        slot = min(range(slots), key=lambda index: free[index])
        free[slot] = max(free[slot], ready.get(job.needs or 0, 0.0)) + seconds
        ready[job.number] = free[slot]
    return max(free)

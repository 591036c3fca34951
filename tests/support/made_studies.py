"""Studies whose jobs never ran: plans, and what their folders would say."""

from collections.abc import Collection
from pathlib import Path
from random import Random
from typing import Any

from prnas.report.html import render
from prnas.space import zoo
from prnas.studies.config import StudyConfig
from prnas.studies.page import study_data
from prnas.studies.plan import Plan, Row, make_plan
from prnas.studies.states import JobState

THREE_ROWS = [
    {"name": "pr-darts", "search": "quick"},
    {"name": "random", "random": "quick"},
    {"name": "darts-v2", "cell": "darts-v2"},
]
MEANS = (0.020, 0.031, 0.0205)  # Of the rows' errors, again and again.


def made_plan(**changes: Any) -> Plan:
    study = {"rows": THREE_ROWS, "seeds": 6, "data": {"name": "digits"}, **changes}
    return make_plan(StudyConfig.from_data(study))


def many_rows(number: int) -> list[dict[str, str]]:
    return [{"name": f"row {i}", "search": "quick"} for i in range(number)]


def made_states(
    plan: Plan, done: float = 1.0, seed: int = 0, genotypes: int | None = None
) -> dict[int, JobState]:
    """The first part of the jobs is done, with errors that spread around each row's mean.

    Searches found so many different genotypes; if it is not said, each its own.
    """
    generator = Random(seed)
    # What searches could have found: random cells of the space of one.
    finder = next((row for row in plan.rows if row.config is not None), None)
    names = [row.name for row in plan.rows]
    states: dict[int, JobState] = {}
    for job in plan.jobs:
        mean = MEANS[names.index(job.row.name) % len(MEANS)]
        error = mean + generator.gauss(0, 0.002)
        size = generator.randrange(300_000, 600_000)
        cells = job.row.genotype(job.unit) or zoo.get("darts-v1")
        if job.row.kind == "search" and finder is not None:
            drawn = Row(job.row.name, "random", finder.config).genotype(
                job.unit % (genotypes or len(plan.jobs))
            )
            cells = drawn or cells
        if job.number > done * len(plan.jobs):
            state = JobState("waiting" if job.needs else "ready")
        elif job.task == "search":
            seconds = generator.uniform(50, 80)
            state = JobState("done", 1, seconds, cells, validation_error=10 * mean)
        else:
            state = JobState("done", 1, 20.0, cells, error, None, size, 90 * size)
        states[job.number] = state
    return states


def write_study_page(
    path: Path,
    plan: Plan,
    done: float = 1.0,
    running: Collection[int] = (),
    genotypes: int | None = None,
    **problems: Any,
) -> Path:
    states = made_states(plan, done, genotypes=genotypes)
    data = study_data(path.parent, plan, states, running=running, **problems)
    path.write_text(render(data), encoding="utf-8")
    return path

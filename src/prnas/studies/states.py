"""The state of a job, read from its run's folder and from nothing else."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from prnas.config import recipes
from prnas.io.checked_files import digest
from prnas.io.errors import FormatError, UserError
from prnas.io.text import read_text
from prnas.models.names import CARD, WEIGHTS
from prnas.runs.integrity import check_run_config, config_digest, newest_state, read_config_data
from prnas.runs.names import CONFIG, GENOTYPE, MODEL, RECORDS
from prnas.space.genotype import Genotype
from prnas.studies.folder import progress_of
from prnas.studies.locks import is_locked, lock_file
from prnas.studies.plan import Job, Plan

State = Literal["waiting", "ready", "running", "stopped", "done", "wrong"]


@dataclass(frozen=True, slots=True)
class JobState:
    """The state of a job by its folder. A job that is `done` has its result, verified.

    `waiting`: for the search whose cells it trains. `stopped`: it can go on. `wrong`: the folder
    holds another run; `message` says which.
    """

    state: State
    checkpoint: int = 0  # The number of the newest one.
    seconds: float | None = None  # Computed so far.
    genotype: Genotype | None = None  # What a search found, or what a training trains.
    test_error: float | None = None
    validation_error: float | None = None  # Error of a search's supernet.
    parameters: int | None = None
    macs: int | None = None
    message: str = ""


def read_states(folder: Path, plan: Plan, locks: bool = True) -> dict[int, JobState]:
    """The states of all jobs by their number. `locks`: also look for running ones."""
    states: dict[int, JobState] = {}
    for job in plan.jobs:
        states[job.number] = read_state(folder, plan, job, states.get(job.needs or 0), locks)
    return states


def read_state(
    folder: Path, plan: Plan, job: Job, needed: JobState | None, locks: bool = True
) -> JobState:
    """`needed`: the state of the search whose cells it trains, if there is one."""
    genotype = None
    if job.task == "retrain":
        genotype = needed.genotype if needed is not None else job.row.genotype(job.unit)
        if needed is not None and (needed.state != "done" or genotype is None):
            return JobState("waiting")
    run = folder / job.path
    if locks and is_locked(lock_file(folder, job.path)):
        return JobState("running", progress_of(run), genotype=genotype)
    if not run.exists():
        return JobState("ready", genotype=genotype)
    try:
        return _verified(run, plan, job, genotype)
    except (UserError, FormatError) as error:
        return JobState("wrong", genotype=genotype, message=str(error))


def _verified(run: Path, plan: Plan, job: Job, genotype: Genotype | None) -> JobState:
    state = newest_state(run)
    stopped = JobState("stopped", progress_of(run), genotype=genotype)
    if not state:
        return stopped
    expected = plan.config_digest(job, genotype)
    if state.get("config") != expected and not _same_config(run, expected):
        raise UserError(
            f"the run in {run} has another config than the study; move it elsewhere, or put the "
            "study's file back"
        )
    stopped = replace(stopped, seconds=_number(state.get("elapsed")))
    position: Any = state.get("position")
    if not (isinstance(position, dict) and cast(dict[str, Any], position).get("done") is True):
        return stopped
    if not _whole_records(run, state):
        return stopped  # Going on with it writes them anew, as it does whatever else is missing.
    if job.task == "search":
        return _search_result(run, state, stopped)
    return _training_result(run, state, stopped)


def _same_config(run: Path, expected: str) -> bool:
    """Whether a config that another release wrote means the same."""
    data = read_config_data(run / CONFIG)
    check_run_config(run, run / CONFIG, data)
    return config_digest(recipes.config_from_data(data).to_data()) == expected


def _whole_records(run: Path, state: Mapping[str, Any]) -> bool:
    records: Any = state.get("records")
    try:
        size, checksum = records["size"], records["sha256"]
        return type(size) is int and digest(run / RECORDS, size) == checksum
    except (OSError, TypeError, KeyError):
        return False


def _search_result(run: Path, state: Mapping[str, Any], stopped: JobState) -> JobState:
    try:
        genotype = Genotype.from_json(state["genotype"])
        if Genotype.loads(read_text(run / GENOTYPE)) != genotype:
            return stopped
    except (FormatError, UserError, KeyError):
        return stopped
    error = _validation_error(run / RECORDS)
    return replace(stopped, state="done", genotype=genotype, validation_error=error)


def _validation_error(records: Path) -> float | None:
    """The error of the last validated epoch. The records' checksum has been verified."""
    for line in reversed(records.read_bytes().splitlines()):
        if line.startswith(b'{"type":"epoch"'):
            score = json.loads(line).get("validation")
            if score is not None:
                return 1 - score["accuracy"]
    return None


def _training_result(run: Path, state: Mapping[str, Any], stopped: JobState) -> JobState:
    if not all((run / MODEL / name).is_file() for name in (CARD, WEIGHTS)):
        return stopped
    trained: Any = state.get("trained")
    try:
        return replace(
            stopped,
            state="done",
            test_error=float(trained["test_error"]),
            parameters=int(trained["parameters"]),
            macs=int(trained["macs"]),
        )
    except (TypeError, KeyError, ValueError):
        return stopped


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None

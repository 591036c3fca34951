"""A study as a page: STUDY/report.html, written while it runs, and served live."""

import os
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from time import monotonic
from typing import Any
from urllib.parse import quote

from prnas.io.atomic import write_atomically
from prnas.report.html import render
from prnas.report.plain_data import clipped, rounded
from prnas.report.view import Facts, cell_pictures, facts_of
from prnas.runs.names import REPORT
from prnas.space.genotype import Genotype, Role
from prnas.studies.attempt import Ended, Slot
from prnas.studies.plan import Job, Plan
from prnas.studies.results import (
    METRICS,
    Pair,
    RowResult,
    StudyResults,
    Unit,
    differences,
    limits,
    results_of,
)
from prnas.studies.run import Watcher
from prnas.studies.states import JobState

MOST_SENTENCES = 8  # Differences that are said in words; the table of pairs has all.
MOST_PAIRS = 1_000
MOST_PROBLEMS = 30
MOST_DRAWN, MOST_DRAWN_OF_ROW = 120, 6  # Genotypes.
LONGEST_MESSAGE = 600
LEAST_SECONDS = 5.0  # Between two refreshes of the page of a study that runs.
SHARE = 0.01  # Largest share of the study's time that they take.


def study_data(
    folder: Path,
    plan: Plan,
    states: Mapping[int, JobState],
    problems: Mapping[int, str] | None = None,
    running: Collection[int] = (),
    page: Path | None = None,
) -> dict[str, Any]:
    """The data of the page.

    `problems`: what went wrong last with jobs that are not done; `running`: jobs that are known to
    run, whatever their states say. `page`: where it is written, if that is not the study's folder.
    """
    results = results_of(plan, states)
    names = {
        number: "running" if number in running else state.state for number, state in states.items()
    }
    problems = {**_wrong(states), **(problems or {})}
    problems = {n: text for n, text in problems.items() if names[n] not in ("done", "running")}
    counts = Counter(names.values())
    numbers = {row.name: number for number, row in enumerate(results.rows)}
    seconds = sum(state.seconds or 0.0 for state in states.values())
    study = {
        "description": plan.study.description,
        "metric": METRICS[results.metric],
        "trained": results.metric == "test_error",
        "compares": results.compares,
        "jobs": {"of": results.jobs, **counts, "problems": len(problems)},
        "seeds": _numbers_of_seeds(plan),
        "trainings": plan.study.trainings,
        "seconds": rounded(seconds),
        "facts": _facts(folder, plan),
        "commands": _commands(folder, results),
        "links": _links(folder, page),
        "rows": _rows(plan, results, states, names),
        "pairs": [_pair_data(pair, numbers) for pair in _most_certain(results.pairs)],
        "num_pairs": len(results.pairs),
        "shown": differences(results)[:MOST_SENTENCES],
        "num_shown": sum(pair.significant for pair in results.pairs),
        "limits": _limits(plan, results),
        "agreement": _agreement(results),
        "genotypes": _genotypes(results.rows),
        "problems": _problem_list(plan, names, problems),
    }
    name = folder.resolve().name
    return {"runs": [], "study": study, "title": name, "ended": results.complete}


def _wrong(states: Mapping[int, JobState]) -> dict[int, str]:
    return {n: state.message for n, state in states.items() if state.state == "wrong"}


def _problem_list(
    plan: Plan, names: Mapping[int, str], problems: Mapping[int, str]
) -> list[tuple[int, str, str, str]]:
    return [
        (number, plan.jobs[number - 1].path, names[number], clipped(text, LONGEST_MESSAGE))
        for number, text in sorted(problems.items())
    ][:MOST_PROBLEMS]


def _links(folder: Path, page: Path | None) -> str | None:
    """The way from the page to the study's folder; `None` if there is none."""
    if page is None:
        return "./"
    try:
        way = os.path.relpath(folder.resolve(), page.resolve().parent)
    except ValueError:  # Another drive.
        return None
    return f"./{quote(Path(way).as_posix())}/"


def _facts(folder: Path, plan: Plan) -> Facts:
    study = plan.study
    data = str(study.data.get("name", ""))
    if not data:
        configs = [plan.retrain, *(row.config for row in plan.rows if row.kind == "search")]
        named = (config.data.name for config in configs if config is not None)
        data = ", ".join(dict.fromkeys(named))
    retrain = "" if plan.retrain is None else f"{study.retrain.recipe}, the same for all rows"
    end = study.first_seed + max(len(plan.units(row)) for row in plan.rows) - 1
    return facts_of(
        ("Data", data),
        ("Training", retrain),
        ("Seeds", f"{study.first_seed} to {end}" if end > study.first_seed else str(end)),
        ("Engine", study.engine.name),
        ("Folder", str(folder)),
    )


def _numbers_of_seeds(plan: Plan) -> str:
    """The number of seeds of each row, or the least and the most: '5', or '8-24'."""
    numbers = sorted({len(plan.units(row)) for row in plan.rows})
    return "-".join(str(number) for number in dict.fromkeys((numbers[0], numbers[-1])))


def _commands(folder: Path, results: StudyResults) -> Facts:
    command = f"prnas study {shlex.quote(str(folder))}"
    commands: Facts = [("All results as CSV", f"{command} --csv")]
    if not results.complete:
        commands = [
            ("Go on if it stopped", command),
            ("Watch it live", f"prnas watch {shlex.quote(str(folder))}"),
            ("Every job and its state", f"{command} --list"),
            *commands,
        ]
    return commands


# ---------------------------------------------------------------- rows and pairs


def _rows(
    plan: Plan, results: StudyResults, states: Mapping[int, JobState], names: Mapping[int, str]
) -> list[dict[str, Any]]:
    jobs: dict[tuple[str, int], list[Job]] = {}
    for job in plan.jobs:
        jobs.setdefault((job.row.name, job.unit), []).append(job)
    return [
        _row_data(row, [jobs.get((row.name, unit.seed), []) for unit in row.units], states, names)
        for row in results.rows
    ]


def _row_data(
    row: RowResult,
    jobs: Sequence[Sequence[Job]],
    states: Mapping[int, JobState],
    names: Mapping[int, str],
) -> dict[str, Any]:
    summary, components = row.summary, row.components
    low, high = summary.interval if summary is not None and summary.interval else (None, None)
    return {
        "name": row.name,
        "kind": row.kind,
        "published": row.published,
        "href": quote(row.name),
        "n": len(row.errors),
        "of": len(row.units),
        "mean": None if summary is None else rounded(summary.mean),
        "sd": None if summary is None else rounded(summary.deviation),
        "low": rounded(low),
        "high": rounded(high),
        "between": None if components is None else rounded(components.between**0.5),
        "within": None if components is None else rounded(components.within**0.5),
        "ranks": row.ranks,
        "parameters": rounded(row.mean_of("parameters")),
        "macs": rounded(row.mean_of("macs")),
        "search_seconds": rounded(row.search_seconds),
        "training_seconds": rounded(row.mean_of("seconds")),
        "units": [
            _unit_data(unit, of_unit, states, names)
            for unit, of_unit in zip(row.units, jobs, strict=True)
        ],
    }


def _unit_data(
    unit: Unit, jobs: Sequence[Job], states: Mapping[int, JobState], names: Mapping[int, str]
) -> dict[str, Any]:
    search = next((names[job.number] for job in jobs if job.task == "search"), None)
    return {
        "seed": unit.seed,
        "error": rounded(unit.error),
        "validation": rounded(unit.validation_error),
        "seconds": rounded(unit.search_seconds),
        "parameters": _mean([training.parameters for training in unit.trainings]),
        "macs": _mean([training.macs for training in unit.trainings]),
        "search": search,
        "trainings": [
            [job.training, names[job.number], rounded(states[job.number].test_error)]
            for job in jobs
            if job.task == "retrain"
        ],
    }


def _mean(values: Sequence[int | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return rounded(fmean(numbers)) if numbers else None


def _most_certain(pairs: Sequence[Pair]) -> list[Pair]:
    return sorted(pairs, key=lambda pair: (pair.corrected, pair.p))[:MOST_PAIRS]


def _pair_data(pair: Pair, numbers: Mapping[str, int]) -> list[Any]:
    values = (rounded(pair.difference), rounded(pair.p), rounded(pair.corrected))
    return [numbers[pair.first], numbers[pair.second], *values, pair.significant]


def _limits(plan: Plan, results: StudyResults) -> list[str]:
    """The limits of the conclusions in sentences: of this study, and of any study of its kind."""
    if not results.compares:
        return [
            "Nothing was trained. The errors here are those of supernets: they compare searches of "
            "one config, and not the networks that different searches found."
        ]
    sentences = limits(results)
    if len(results.rows) == 1:
        sentences.append("A single row is compared with nothing: it shows how far its seeds vary.")
    if results.metric == "true_error":
        sentences.append(
            "Cells were looked up: the errors are those of NAS-Bench-201's networks on CIFAR-10 "
            "after 200 epochs. Other spaces and data may order the rows in another way."
        )
        return sentences
    sentences.append(
        "All of this holds for these data and for networks that are trained in this way. Other "
        "data, sizes or longer trainings may order the rows in another way."
    )
    return sentences


def _agreement(results: StudyResults) -> str:
    agreement = results.agreement
    if agreement is None:
        return ""
    names = ", ".join(agreement.rows)
    return (
        f"Kendall's τ with the published order of {names} on CIFAR-10: {agreement.tau:.2f} "
        "(1: the same order, -1: the reverse)."
    )


# ---------------------------------------------------------------- genotypes


@lru_cache(maxsize=MOST_DRAWN)
def _pictures(genotype: Genotype) -> Mapping[Role, Any]:
    return cell_pictures(genotype)


def _genotypes(rows: Sequence[RowResult]) -> list[dict[str, Any]]:
    """Some of each row's cells, from the best to the worst: all of them would be too many."""
    most = max(1, min(MOST_DRAWN_OF_ROW, MOST_DRAWN // len(rows)))
    return [_drawn(number, row, most) for number, row in enumerate(rows)]


def _drawn(number: int, row: RowResult, most: int) -> dict[str, Any]:
    units: dict[Genotype, list[Unit]] = {}
    for unit in row.units:
        if unit.genotype is not None:
            units.setdefault(unit.genotype, []).append(unit)
    ordered = sorted(units.items(), key=lambda entry: _error_of(entry[1]) or 2.0)
    drawn = [
        {
            "seeds": [unit.seed for unit in same][:MOST_DRAWN_OF_ROW],
            "more": max(0, len(same) - MOST_DRAWN_OF_ROW),
            "error": rounded(_error_of(same)),
            "pictures": _pictures(genotype),
        }
        for genotype, same in _spaced(ordered, most)
    ]
    return {"row": number, "of": len(units), "drawn": drawn}


def _error_of(units: Sequence[Unit]) -> float | None:
    errors = [unit.error for unit in units if unit.error is not None]
    return fmean(errors) if errors else None


def _spaced(items: Sequence[Any], most: int) -> Sequence[Any]:
    """At most so many items, evenly spaced, with the first and, of several, the last."""
    if len(items) <= most:
        return items
    if most == 1:
        return items[:1]
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]


# ---------------------------------------------------------------- while the study runs


class PageWriter(Watcher):
    """Writes STUDY/report.html at the start, now and then as jobs end, and at the end.

    A page that cannot be written stops no study: `say` gets a single message.
    """

    def __init__(
        self, folder: Path, say: Callable[[str], None], clock: Callable[[], float] = monotonic
    ) -> None:
        self._folder, self._say, self._clock = folder, say, clock
        self._plan: Plan | None = None
        self._states: dict[int, JobState] = {}
        self._running: set[int] = set()
        self._problems: dict[int, str] = {}
        self._next = 0.0
        self._news = self._failed = False

    def on_start(self, plan: Plan, states: dict[int, JobState]) -> None:
        self._plan, self._states = plan, states
        self._write()

    def on_job(self, job: Job, slot: Slot | None) -> None:
        self._running.add(job.number)
        self._news = True

    def on_job_end(self, job: Job, ended: Ended, state: JobState, failure: str) -> None:
        self._running.discard(job.number)
        if failure or ended.message:
            self._problems[job.number] = failure or ended.message
        self._news = True

    def on_tick(self) -> None:
        if self._news and self._clock() >= self._next:
            self._write()

    def close(self) -> None:
        self._running.clear()
        self._write()

    def _write(self) -> None:
        if self._plan is None:
            return
        began = self._clock()
        self._news = False
        try:
            data = study_data(self._folder, self._plan, self._states, self._problems, self._running)
            write_atomically(self._folder / REPORT, render(data).encode())
        except Exception as error:  # A picture of the study is never worth the study.
            if not self._failed:
                self._failed = True
                self._say(f"cannot write the page ({error}); the study goes on without it")
        now = self._clock()
        self._next = now + max(LEAST_SECONDS, (now - began) / SHARE)

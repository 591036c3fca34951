"""`prnas study`: many searches and trainings, what is left of them, and what they show."""

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from prnas.commands.options import StudyOptions
from prnas.commands.run_options import RUNS, measuring
from prnas.io.atomic import write_atomically
from prnas.io.errors import UserError, cannot
from prnas.io.paths import is_folder
from prnas.io.text import write_text
from prnas.runs import signals
from prnas.runs.names import REPORT, check_name
from prnas.studies import attempts, statistics, tables
from prnas.studies.config import StudyConfig, read_study
from prnas.studies.engines import Engine, LocalEngine
from prnas.studies.folder import check_study, is_study, open_study, read_plan
from prnas.studies.machine import Share, share_out
from prnas.studies.names import SUMMARY
from prnas.studies.plan import Plan, make_plan
from prnas.studies.results import StudyResults, pooled_deviation, results_of
from prnas.studies.run import Outcome, Watcher, Watchers, run_study
from prnas.studies.states import JobState, read_states
from prnas.terminal.output import note, show, show_json, show_next, visible

Ending = Literal["all", "folder", "json"]
FAILED = 1  # The exit code if a job was given up.
NOTHING = 2  # If none could even begin.
LATER = 75  # If a job cannot be run yet, as sysexits.h has it.
MOST_NAMED = 5  # Jobs in a message.
TYPICAL = 0.0023  # Spread of random DARTS cells on CIFAR-10, one training each.


def run(name: str, options: StudyOptions) -> None:
    folder, plan = _plan(name, options)
    _check(options, plan)
    if options.dry_run:
        _dry_run(folder, plan)
    elif options.listing or options.csv or options.latex or options.as_json:
        _read(folder, plan, options)
    else:
        go_on(folder, plan, job=options.job, quiet=options.quiet)


def _plan(name: str, options: StudyOptions) -> tuple[Path, Plan]:
    """The study's folder, and its plan. A folder stands for the study that was begun in it."""
    overrides = list(options.overrides)
    if options.engine is not None:
        ray = options.engine == "ray"  # Another one has no use for the address in the file.
        overrides.append(f"engine{'.name' if ray else ''}={json.dumps(options.engine)}")
    if options.address is not None:
        overrides.append(f"engine.address={json.dumps(options.address)}")
    if options.slots is not None:
        overrides.append(f"slots={options.slots}")
    if is_folder(name):
        folder = Path(name)
        if not is_study(folder):
            raise UserError(f"{folder} is not the folder of a study")
        if options.runs is not None or options.name is not None:
            raise UserError("a study's folder says where it is; leave out --runs and --name")
        plan = read_plan(folder)
        study = StudyConfig.from_data(plan.study.to_data(), overrides)
        return folder, Plan(study, plan.rows, plan.retrain)
    study = read_study(name, overrides)
    file = Path(name)
    plan = make_plan(study, file.parent if file.is_file() else None)
    own = options.name or file.stem
    check_name(own, "--name" if options.name else "a study's name")
    return (options.runs or RUNS) / own, plan


def _check(options: StudyOptions, plan: Plan) -> None:
    acts = {
        "--list": options.listing,
        "--dry-run": options.dry_run,
        "--csv": options.csv,
        "--latex": options.latex,
        "--json": options.as_json,
        "--job": options.job is not None,
    }
    given = [name for name, wanted in acts.items() if wanted]
    if len(given) > 1 and not (given == ["--list", "--json"]):
        raise UserError(f"choose one of {' and '.join(given)}")
    if options.out is not None and not (options.csv or options.latex or options.as_json):
        raise UserError("--out is for --csv, --latex and --json")
    if options.job is not None and (options.engine or "local") != "local":
        raise UserError(f"choose one of --job and --engine {options.engine}: a job runs here")
    number = len(plan.jobs)
    if options.job is not None and not 1 <= options.job <= number:
        raise UserError(f"--job must be from 1 to {number}, got {options.job}; --list shows them")


# ---------------------------------------------------------------- running it


def go_on(
    folder: Path,
    plan: Plan,
    *,
    job: int | None = None,
    quiet: bool = False,
    ending: Ending = "all",
) -> None:
    """Run what is not done yet, or the one job; then show what came of it, and exit.

    `ending`: all of that, or nothing but the folder, or the results as JSON.
    """
    brief = ending != "all"
    from prnas.studies.page import PageWriter
    from prnas.terminal.study_view import StudyDisplay, show_results

    check_study(folder, plan)
    engine, share = engine_of(plan.study, single=job is not None)
    try:
        open_study(folder, plan)
        display = StudyDisplay(len(share.slots), quiet=quiet or brief)
        numbers = None if job is None else [job]
        watcher: Watcher = display
        if job is None:  # Many jobs at once would all write the same page.
            watcher = Watchers(display, PageWriter(folder, note if brief else _show_note))
        outcome = run_study(folder.absolute(), plan, share, engine, watcher, numbers)
    finally:
        engine.close()
    if job is not None:
        _end_of_job(plan, job, outcome)
        return
    results = results_of(plan, outcome.states)
    with cannot(f"write {folder / SUMMARY}"):
        write_summary(folder, plan, results)
    if ending == "folder":
        print(folder)
    elif ending == "json":
        show_json({"folder": str(folder), **results.to_json(plan)})
    elif results.jobs_done:
        show_results(results)
        show("", f"as a page: {folder / REPORT}")
    _end(folder, plan, outcome, results, brief)


def engine_of(study: StudyConfig, single: bool = False) -> tuple[Engine, Share]:
    """The engine that a study names, and each job's share. A `single` job runs on this machine.

    Another engine has its line here, and imports what it needs.
    """
    if study.engine.name == "ray" and not single:
        from prnas.studies.ray_engine import start_ray

        return start_ray(study)
    share = share_out(study, single=single)
    return LocalEngine(share.slots), share


def write_summary(folder: Path, plan: Plan, results: StudyResults) -> None:
    text = json.dumps(results.to_json(plan), ensure_ascii=False) + "\n"
    write_atomically(folder / SUMMARY, text.encode())


def _end_of_job(plan: Plan, number: int, outcome: Outcome) -> None:
    job, state = plan.jobs[number - 1], outcome.states[number]
    if outcome.signal:
        sys.exit(signals.EXIT + outcome.signal)
    if number in outcome.failed:
        print(f"prnas: job {number}: {outcome.failed[number]}", file=sys.stderr)
        sys.exit(FAILED)
    if state.state != "done":
        text = f"job {number} trains what job {job.needs} finds, which is not done yet"
        print(f"prnas: {text}", file=sys.stderr)
        sys.exit(LATER)
    show(f"job {number} is done: {job.path}")


def _end(
    folder: Path, plan: Plan, outcome: Outcome, results: StudyResults, brief: bool = False
) -> None:
    tell = _tell_beside if brief else show
    command = f"prnas study {shlex.quote(str(folder))}"
    for line in given_up(plan, outcome.failed):
        print(f"prnas: {line}", file=sys.stderr)
    if outcome.signal:
        tell("", "stopped; everything is saved. To go on:", f"  {command}")
        sys.exit(signals.EXIT + outcome.signal)
    if outcome.failed or not results.complete:
        tell("", "when that is mended, go on:", f"  {command}")
        begun = any(state.checkpoint or state.state == "done" for state in outcome.states.values())
        sys.exit(FAILED if begun else NOTHING)
    if not brief:
        show_next(f"{command} --csv", f"{command} --latex", logged=True)


def _show_note(text: str) -> None:
    show(f"note: {text}")


def _tell_beside(*lines: str) -> None:
    """Print lines to standard error, where scripts do not read them."""
    print(*map(visible, lines), sep="\n", file=sys.stderr)


def given_up(plan: Plan, failed: Mapping[int, str]) -> list[str]:
    """A line for each reason, with the jobs that it is true of."""
    reasons: dict[str, list[int]] = {}
    for number, reason in sorted(failed.items()):
        reasons.setdefault(reason, []).append(number)
    lines: list[str] = []
    for reason, numbers in reasons.items():
        named = [f"{number} ({plan.jobs[number - 1].path})" for number in numbers[:MOST_NAMED]]
        more = len(numbers) - len(named)
        text = ", ".join(named) + (f" and {more} more" if more else "")
        single = len(numbers) == 1
        lines.append(
            f"{'job' if single else 'jobs'} {text} {'was' if single else 'were'} given up: {reason}"
        )
    return lines


# ---------------------------------------------------------------- reading it


def _read(folder: Path, plan: Plan, options: StudyOptions) -> None:
    states = read_states(folder, plan)
    if options.listing:
        notes = attempts.last_problems(folder, plan)
        if options.as_json:
            show_json(_job_data(plan, states, notes))
            return
        from prnas.terminal.study_view import show_jobs

        show_jobs(plan, states, _open_notes(states, notes))
        return
    results = results_of(plan, states)
    if options.as_json:
        text = json.dumps(results.to_json(plan), indent=1, ensure_ascii=False) + "\n"
    else:
        text = tables.to_csv(results) if options.csv else tables.to_latex(results)
    if options.out is None:
        print(text, end="")
    else:
        write_text(options.out, text)
        show(f"wrote {options.out}")


def _open_notes(states: Mapping[int, JobState], notes: Mapping[int, str]) -> dict[int, str]:
    return {number: text for number, text in notes.items() if states[number].state != "done"}


def _job_data(
    plan: Plan, states: Mapping[int, JobState], notes: Mapping[int, str]
) -> list[dict[str, object]]:
    return [
        {
            "job": job.number,
            "row": job.row.name,
            "task": job.task,
            "seed": job.unit,
            "training": job.training,
            "needs": job.needs,
            "folder": job.path,
            "state": state.state,
            "seconds": state.seconds,
            "test_error": state.test_error,
            "message": state.message or notes.get(job.number, ""),
        }
        for job in plan.jobs
        for state in (states[job.number],)
    ]


def _dry_run(folder: Path, plan: Plan) -> None:
    """The plan, the time it takes, and what it can show. Nothing is written."""
    from prnas.config.sections import RunConfig
    from prnas.studies.estimate import estimate
    from prnas.terminal.study_view import show_plan

    states = read_states(folder, plan)
    share = share_out(plan.study)
    slots = len(share.slots)

    def measure(config: RunConfig) -> float:
        from prnas.studies.measure import measured_seconds

        with measuring():
            return measured_seconds(config, share.threads)

    expected = estimate(plan, states, slots, measure)
    show_plan(plan, expected, slots, power_lines(plan, results_of(plan, states)), folder)
    show_next(f"prnas study {shlex.quote(str(folder))}" if is_study(folder) else "prnas study FILE")


def power_lines(plan: Plan, results: StudyResults) -> list[str]:
    """Sentences on the difference that the study's seeds can show."""
    n, rows = plan.fewest_units, len(plan.rows)
    if rows < 2 or not results.compares:
        return []
    pairs, other = plan.study.num_pairs, plan.units_against or n
    level = statistics.LEVEL / pairs
    if statistics.detectable(n, 1.0, level, other=other) is None:
        against = {k: k if plan.units_against is None else other for k in range(2, 100)}
        least = next(k for k in against if statistics.smallest_p(k, against[k]) <= level)
        smallest = statistics.smallest_p(n, other)
        return [
            f"With {n} seeds a row, no difference can be significant: the permutation test of "
            f"{n} against {other} numbers has a p-value of at least {smallest:.2g}, "
            f"and {'5 %' if pairs == 1 else f'5 % divided by {pairs} pairs'} is needed. "
            f"At least {least} seeds are needed."
        ]
    samples = [row.errors for row in results.rows if len(row.errors) > 1]
    if samples:
        spread, source = pooled_deviation(samples), "which this study has so far"
    else:
        spread, source = TYPICAL, "which random cells of DARTS have on CIFAR-10 (one training each)"
    if spread <= 0:
        return []
    points = statistics.detectable(n, spread, level, other=other)
    assert points is not None
    half = statistics.needed(points / 2, spread, level, times=other / n)
    row = "a row" if other == n else f"a row against {other}"
    return [
        f"With {n} seeds {row} and a standard deviation of {100 * spread:.2f} points, {source}, a "
        f"difference of {100 * points:.2f} points is shown in {100 * statistics.POWER:.0f} of 100 "
        f"studies ({pairs} {'pair' if pairs == 1 else 'pairs, each at a level of 5 %'}"
        f"{'' if pairs == 1 else f' divided by {pairs}'}). Half of that needs {half} seeds.",
        "More trainings of each search help less than more searches.",
    ]

"""The display of a study: a live view in a terminal, a line a job in a log; its tables."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from prnas.studies.attempt import Ended, Slot
from prnas.studies.estimate import Estimate, mean_seconds, seconds_left
from prnas.studies.plan import Job, Plan
from prnas.studies.results import RowResult, StudyResults, conclusions
from prnas.studies.run import Watcher
from prnas.studies.states import JobState
from prnas.studies.tables import rank_text
from prnas.terminal.amounts import counted, duration, exact_percent
from prnas.terminal.output import facts, show, show_heading, show_prose, table, visible
from prnas.terminal.screen import Screen

BAR = 40
TASKS = {"search": "search", "retrain": "training"}


class StudyDisplay(Watcher):
    """Shows a study on standard output; `quiet` leaves all but the end out."""

    def __init__(
        self, slots: int, *, quiet: bool = False, clock: Callable[[], float] = monotonic
    ) -> None:
        self._screen = Screen(quiet, clock)
        self._clock, self._slots = clock, slots
        self._plan: Plan | None = None
        self._states: dict[int, JobState] = {}
        self._running: dict[int, tuple[Job, str, float]] = {}
        self._failed = 0

    def on_start(self, plan: Plan, states: dict[int, JobState]) -> None:
        self._plan, self._states = plan, states
        self._screen.start(self._view)
        done = self._num_done()
        already = f", {done} done already" if done else ""
        self._screen.put(
            [f"{counted(len(plan.jobs), 'job')}{already}; {self._slots} at the same time"]
        )

    def on_job(self, job: Job, slot: Slot | None) -> None:
        goes_on = self._states[job.number].state == "stopped"
        where = f" ({slot.name})" if slot is not None else ""
        self._running[job.number] = (job, where, self._clock())
        if not self._screen.is_live:
            verb = "goes on" if goes_on else "started"
            self._screen.put([f"job {job.number}, {_title(job)}: {verb}{where}"])
        self._screen.refresh(now=True)

    def on_job_end(self, job: Job, ended: Ended, state: JobState, failure: str) -> None:
        self._running.pop(job.number, None)
        if state.state == "done":
            line = f"done in {duration(ended.seconds)}{_result(state)}{self._left()}"
        elif failure:
            self._failed += 1
            line = f"given up: {failure}"
        elif ended.code is None:
            line = "is under way elsewhere; waiting for it"
        else:
            line = f"stopped ({_code(ended.code)}); its state is saved"
        style = "red" if failure else ""
        self._screen.put([f"job {job.number}, {_title(job)}: {line}"], style=style)
        self._screen.refresh(now=True)

    def on_tick(self) -> None:
        self._screen.refresh()

    def on_stop(self) -> None:
        self._screen.put(["stopping: jobs that are under way save their state first"])

    def close(self) -> None:
        self._screen.close()

    def _num_done(self) -> int:
        return sum(state.state == "done" for state in self._states.values())

    def _left(self) -> str:
        assert self._plan is not None
        now = self._clock()
        under_way = [(number, now - began) for number, (_, _, began) in self._running.items()]
        of_job = mean_seconds(self._plan, self._states)
        left = seconds_left(self._plan, self._states, self._slots, of_job, under_way)
        return "" if not left else f"; about {duration(left)} left"

    def _view(self) -> RenderableType:
        if not self._screen.is_live or self._plan is None:
            return Group()
        done, number, now = self._num_done(), len(self._plan.jobs), self._clock()
        grid = Table.grid(padding=(0, 2, 0, 0))
        for job, where, began in self._running.values():
            line = f"{_title(job)}{where}"
            grid.add_row(f"  job {job.number}", Text(visible(line)), duration(now - began))
        failed = f", {self._failed} given up" if self._failed else ""
        bar = Table.grid(padding=(0, 2, 0, 0))
        text = f"{done} of {number} jobs done{failed}{self._left()}"
        bar.add_row(ProgressBar(number, done, min(BAR, self._screen.width // 3)), Text(text))
        return Group(grid, bar)


def _title(job: Job) -> str:
    training = "" if job.training is None else f", training {job.training}"
    return f"{job.row.name} seed {job.unit}{training}"


def _code(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _result(state: JobState) -> str:
    if state.test_error is not None:
        return f": test error {exact_percent(state.test_error)}"
    if state.validation_error is not None:
        return f": validation error {exact_percent(state.validation_error)} (supernet)"
    return ""


# ---------------------------------------------------------------- tables


def show_jobs(plan: Plan, states: Mapping[int, JobState], notes: Mapping[int, str]) -> None:
    """Every job and its state. `notes`: what else is to be said, by the number of the job."""
    rows = [
        [
            str(job.number),
            job.row.name,
            TASKS[job.task],
            str(job.unit),
            "" if job.training is None else str(job.training),
            state.state,
            "" if state.seconds is None else duration(state.seconds),
            _error(state),
            notes.get(job.number, state.message),
        ]
        for job in plan.jobs
        for state in (states[job.number],)
    ]
    headings = ["job", "row", "task", "seed", "training", "state", "time", "error", ""]
    show(table(headings, rows, right=(0, 3, 4, 6, 7)))
    done = sum(state.state == "done" for state in states.values())
    show("", f"{done} of {counted(len(plan.jobs), 'job')} done")


def _error(state: JobState) -> str:
    error = state.test_error if state.test_error is not None else state.validation_error
    return "" if error is None else exact_percent(error)


def show_plan(
    plan: Plan, estimate: Estimate, slots: int, power: Sequence[str], folder: Path
) -> None:
    """Show what a study will do, how long that takes, and what it can show."""
    study = plan.study
    if study.description:
        show_heading(study.description)
    rows: list[list[str]] = []
    for row in plan.rows:
        what = {"search": "a search for each seed", "random": "random cells, for each seed"}
        search = estimate.of_job.get((row.name, "search"))
        training = estimate.of_job.get((row.name, "retrain"))
        rows.append(
            [
                row.name,
                what.get(row.kind, row.published or "cells of a file"),
                str(len(plan.units(row))),
                "-" if row.kind != "search" else _about(search),
                str(study.trainings),
                "-" if not study.trainings else _about(training),
            ]
        )
    headings = ["row", "what", "seeds", "a search", "trainings of each", "a training"]
    show(table(headings, rows, right=(2, 3, 4, 5)), "")
    left = "not known" if estimate.left is None else f"about {duration(estimate.left)}"
    pairs = [
        ("jobs", f"{len(plan.jobs)}, {slots} at the same time"),
        ("time", f"{left}, for all that is not done yet"),
        ("folder", str(folder)),
    ]
    show(facts(pairs))
    for problem in estimate.problems:
        show(f"note: no estimate for {problem}")
    if power:
        show("")
    for sentence in power:
        show_prose(sentence)


def _about(seconds: float | None) -> str:
    return "?" if seconds is None else duration(seconds)


def show_results(results: StudyResults) -> None:
    """The rows, which pairs differ, and what may be concluded."""
    trained = results.metric == "test_error"
    rows = [_row(row, results.compares) for row in results.rows]
    headings = ["row", "n", "error %", "interval", "between", "within", "rank", "params", "search"]
    right = (1, 2, 3, 4, 5, 6, 7, 8)
    show("", table(headings, rows, right=right))
    if len(results.pairs) > 0:
        pairs = [
            [
                pair.first,
                pair.second,
                f"{100 * pair.difference:+.2f}",
                f"{pair.p:.3g}",
                f"{pair.corrected:.3g}",
                "yes" if pair.significant else "no",
            ]
            for pair in results.pairs
        ]
        titles = ["row", "against", "points", "p", "corrected", "differ"]
        show("", table(titles, pairs, right=(2, 3, 4)))
    if results.agreement is not None:
        names = ", ".join(results.agreement.rows)
        tau = f"{results.agreement.tau:.2f}"
        show("", f"Kendall's tau with the published order of {names}: {tau}")
    what = {
        "test_error": "test error",
        "true_error": "test error that NAS-Bench-201 says the cell has on CIFAR-10",
        "validation_error": "validation error of the supernet",
    }[results.metric]
    show("")
    show_prose(
        f"Error: mean ± standard deviation of the {what} over n seeds, with a 95 % interval of the "
        "mean (bootstrap)."
        + (
            " Each seed counts once: the mean of its trainings. Between and within: standard "
            "deviations between searches, and of trainings of the same cells."
            if trained
            else ""
        )
    )
    for sentence in conclusions(results):
        show("")
        show_prose(sentence)


def _row(row: RowResult, compares: bool) -> list[str]:
    summary, components = row.summary, row.components
    size = row.mean_of("parameters")
    seconds = row.search_seconds
    wanted = len(row.units)
    number = str(len(row.errors)) if len(row.errors) == wanted else f"{len(row.errors)} of {wanted}"
    if summary is None:
        error, interval = "-", "-"
    else:
        spread = "" if summary.deviation is None else f" ± {100 * summary.deviation:.2f}"
        error, interval = f"{100 * summary.mean:.2f}{spread}", "-"
        if summary.interval is not None:
            low, high = summary.interval
            interval = f"{100 * low:.2f}-{100 * high:.2f}"
    return [
        row.name,
        number,
        error,
        interval,
        "-" if components is None else f"{100 * components.between**0.5:.2f}",
        "-" if components is None else f"{100 * components.within**0.5:.2f}",
        rank_text(row.ranks) if compares else "-",
        "-" if size is None else f"{size:,.0f}",
        "-" if seconds is None else duration(seconds),
    ]

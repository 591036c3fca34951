"""A study's page as `prnas watch` serves it, with the pages of its runs beneath."""

from collections.abc import Callable
from pathlib import Path
from time import monotonic
from urllib.parse import quote

from prnas.io.errors import UserError
from prnas.report.read_run import is_run
from prnas.report.server import Live, LiveReport
from prnas.studies import attempts
from prnas.studies.folder import read_plan
from prnas.studies.page import study_data
from prnas.studies.plan import Plan
from prnas.studies.states import JobState, read_state

LEAST_SECONDS = 1.5  # Seconds between two looks at the folders.
SHARE = 0.05  # Largest share of the time that these looks take.
MOST_RUNS = 8  # Runs whose pages stay in memory.


class LiveStudy(Live):
    """The study as it is now, but not looked at too often."""

    def __init__(
        self, folder: Path, say: Callable[[str], None], clock: Callable[[], float] = monotonic
    ) -> None:
        super().__init__(folder, say)
        self._clock = clock
        self._plan: Plan = read_plan(folder)
        self._states: dict[int, JobState] = {}
        self._runs: dict[str, LiveReport] = {}
        self._next = 0.0
        self._shown: object = None
        self._update()

    def subpage(self, folder: str) -> LiveReport | None:
        """The page of a run, by its folder in the address; only the study's own jobs have one."""
        with self._lock:
            path = self._paths.get(folder)
            if path is None:
                return None
            live = self._runs.pop(folder, None)
            try:
                if live is None and is_run(path):
                    live = LiveReport(path, self._say)
            except UserError:
                return None
            if live is not None:
                self._runs[folder] = live  # In the order of their latest requests.
                for old in list(self._runs)[:-MOST_RUNS]:
                    del self._runs[old]
            return live

    def _read(self) -> None:
        if self._clock() >= self._next:
            self._next = self._clock() + LEAST_SECONDS
            super()._read()

    def _update(self) -> None:
        """Look at the jobs that are not done. What is done stays so."""
        began = self._clock()
        plan = read_plan(self._folder)  # It may have grown.
        if plan != self._plan:
            self._plan, self._states = plan, {}
        states: dict[int, JobState] = {}
        for job in self._plan.jobs:
            state = self._states.get(job.number)
            if state is None or state.state != "done":
                state = read_state(self._folder, plan, job, states.get(job.needs or 0))
            states[job.number] = state
        problems = attempts.last_problems(self._folder, plan)
        self._states = states
        facts = (states, problems, plan)
        if facts != self._shown:
            self._shown = facts
            self._show(study_data(self._folder, plan, states, problems))
            self._paths = {f"/{quote(job.path)}": self._folder / job.path for job in plan.jobs}
        now = self._clock()
        self._next = now + max(LEAST_SECONDS, (now - began) / SHARE)

"""The queue of jobs: which is next, and what an attempt's end means. It starts nothing itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from prnas.runs.signals import EXIT
from prnas.studies.attempt import Ended
from prnas.studies.plan import Job
from prnas.studies.states import JobState

STRIKES = 3  # Attempts without any progress after which a job is given up.
BUSY = 2.0  # Seconds until a job that is under way elsewhere is looked at again.
USER_ERROR = 2
_STOPPED = (EXIT + 2, EXIT + 15)  # Exit codes after SIGINT or SIGTERM: the state is saved.


@dataclass
class JobQueue:
    """The jobs of a study that are not done yet."""

    jobs: Mapping[int, Job]
    states: dict[int, JobState]
    under_way: set[int] = field(default_factory=set[int])
    failed: dict[int, str] = field(default_factory=dict[int, str])  # Why, by number.
    _strikes: dict[int, int] = field(default_factory=dict[int, int])
    _later: dict[int, float] = field(default_factory=dict[int, float])
    _attempts: dict[int, int] = field(default_factory=dict[int, int])

    def __post_init__(self) -> None:
        for number, state in self.states.items():
            if state.state == "wrong":
                self.failed[number] = state.message

    def next(self, now: float) -> Job | None:
        """The job to start now, if there is one. The first in number, of those tried least."""
        ready = [
            job
            for number, job in self.jobs.items()
            if self._open(number) and number not in self.under_way
            if self._later.get(number, now) <= now and self._has_cells(job)
        ]
        return min(ready, key=self._turn, default=None)

    def _turn(self, job: Job) -> tuple[int, int]:
        return self._attempts.get(job.number, 0), job.number

    def _open(self, number: int) -> bool:
        return self.states[number].state != "done" and number not in self.failed

    def _has_cells(self, job: Job) -> bool:
        return job.needs is None or self.states[job.needs].state == "done"

    @property
    def unfinished(self) -> bool:
        """Whether anything is under way, or may still be started."""
        return bool(self.under_way) or any(
            self._open(number) and not self._hopeless(job) for number, job in self.jobs.items()
        )

    def _hopeless(self, job: Job) -> bool:
        """Whether a training waits for cells that nobody is going to find."""
        if job.needs is None or self._has_cells(job):
            return False
        return job.needs in self.failed or job.needs not in self.jobs

    def started(self, job: Job) -> None:
        self.under_way.add(job.number)
        self._attempts[job.number] = self._attempts.get(job.number, 0) + 1

    def ended(self, ended: Ended, state: JobState, now: float) -> None:
        """Take note of an attempt's end; `state` is what the folder says after it."""
        number = ended.task.number
        self.under_way.discard(number)
        self.states[number] = state
        if state.state == "done":
            return
        if ended.code is None:
            self._later[number] = now + BUSY
        elif state.state == "wrong":
            self.failed[number] = state.message
        elif ended.code == USER_ERROR:
            self._fail(self.jobs[number], ended)
        elif ended.code not in _STOPPED:
            self._strike(number, ended)

    def _fail(self, job: Job, ended: Ended) -> None:
        """Give up a job whose message will stay true, and its row if that cannot even begin."""
        self.failed[job.number] = ended.message or "it ended with exit code 2"
        if ended.progress == 0 and not self.states[job.number].checkpoint:
            for number, other in self.jobs.items():
                same = other.row.name == job.row.name and other.task == job.task
                begun = self.states[number].state in ("done", "running", "stopped")
                if same and not begun and number not in self.under_way | self.failed.keys():
                    self.failed[number] = f"not started: {job.path} could not begin"

    def _strike(self, number: int, ended: Ended) -> None:
        strikes = 0 if ended.progress > 0 else self._strikes.get(number, 0) + 1
        self._strikes[number] = strikes
        if strikes >= STRIKES:
            reason = ended.message or f"exit code {ended.code}"
            self.failed[number] = f"{strikes} attempts made no progress; the last: {reason}"

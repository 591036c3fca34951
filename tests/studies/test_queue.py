from pathlib import Path
from typing import Any

import pytest

from prnas.studies.attempt import Ended, Task
from prnas.studies.config import StudyConfig
from prnas.studies.plan import make_plan
from prnas.studies.queue import BUSY, JobQueue
from prnas.studies.states import JobState

READY, WAITING, DONE = JobState("ready"), JobState("waiting"), JobState("done")
STOPPED = JobState("stopped", checkpoint=1)


def queue_of(**changes: Any) -> JobQueue:
    """Jobs 1 and 2 are searches of row s; then trainings: 3 of 1, 4 and 6 of row c, 5 of 2."""
    rows = [{"name": "s", "search": "quick"}, {"name": "c", "cell": "darts-v2"}]
    plan = make_plan(StudyConfig.from_data({"rows": rows, "seeds": 2, **changes}))
    states = {job.number: WAITING if job.needs else READY for job in plan.jobs}
    return JobQueue({job.number: job for job in plan.jobs}, states)


def start(queue: JobQueue, now: float = 0.0) -> int | None:
    job = queue.next(now)
    if job is None:
        return None
    queue.started(job)
    return job.number


def end(
    queue: JobQueue,
    number: int,
    code: int | None,
    state: JobState = READY,
    progress: int = 0,
    now: float = 0.0,
) -> None:
    nowhere = Path("nowhere")
    task = Task(number, queue.jobs[number].path, nowhere, nowhere, (), (), "")
    queue.ended(Ended(task, code, 1.0, progress, "the disk is full"), state, now)


def test_jobs_come_in_order_and_trainings_wait_for_their_search() -> None:
    queue = queue_of()
    assert [start(queue) for _ in range(5)] == [1, 2, 4, 6, None]
    end(queue, 2, 0, DONE)
    assert start(queue) == 5
    end(queue, 1, 0, DONE)
    assert start(queue) == 3
    for number in (3, 4, 5, 6):
        assert queue.unfinished
        end(queue, number, 0, DONE)
    assert not queue.unfinished
    assert queue.failed == {}


def test_an_exit_code_is_not_believed() -> None:
    queue = queue_of()
    assert start(queue) == 1
    end(queue, 1, 0)  # It says that all went well; its folder says nothing.
    assert queue.states[1] == READY
    assert [start(queue) for _ in range(4)] == [2, 4, 6, 1]
    end(queue, 1, 1, DONE)
    assert queue.failed == {}


def test_three_strikes_without_progress_end_a_job_and_the_rest_goes_on() -> None:
    queue = queue_of(trainings=1)
    for _ in range(3):
        assert 1 not in queue.failed
        queue.under_way.add(1)
        end(queue, 1, -9, STOPPED)
    assert queue.failed == {1: "3 attempts made no progress; the last: the disk is full"}
    assert queue.unfinished
    for number in (2, 4, 5, 6):
        end(queue, number, 0, DONE)
    assert not queue.unfinished, "nobody finds the cells of job 3"
    assert start(queue) is None


def test_progress_forgives_strikes() -> None:
    queue = queue_of()
    for progress in (0, 0, 3, 0, 0, 2, 0, 0):
        end(queue, 1, -9, STOPPED, progress)
    assert queue.failed == {}
    end(queue, 1, -9, STOPPED)
    assert list(queue.failed) == [1]


@pytest.mark.parametrize("code", [130, 143])
def test_a_job_that_was_asked_to_stop_has_no_strike(code: int) -> None:
    queue = queue_of()
    for _ in range(10):
        end(queue, 1, code, STOPPED)
    assert queue.failed == {}


def test_a_job_under_way_elsewhere_is_looked_at_again_later() -> None:
    queue = queue_of(seeds=1)
    assert [start(queue), start(queue)] == [1, 3]
    end(queue, 1, None, now=10.0)
    assert queue.unfinished
    assert start(queue, now=10.0 + BUSY / 2) is None
    assert start(queue, now=10.0 + BUSY) == 1


def test_a_row_that_cannot_begin_is_given_up_and_other_rows_go_on() -> None:
    queue = queue_of(seeds=4)
    assert start(queue) == 1
    assert start(queue) == 2
    end(queue, 1, 2)
    assert queue.failed[1] == "the disk is full"
    assert queue.failed[3] == queue.failed[4] == "not started: s/seed-0 could not begin"
    assert 2 not in queue.failed, "it is under way"
    end(queue, 2, 0, DONE)
    assert start(queue) == 6  # A training of the other row, then of the cells that were found.
    assert [start(queue) for _ in range(5)] == [7, 8, 10, 12, None]


def test_a_job_that_complains_later_ends_alone() -> None:
    queue = queue_of(seeds=4)
    end(queue, 1, 2, STOPPED, progress=1)
    assert list(queue.failed) == [1]


def test_a_folder_with_another_run_is_not_touched() -> None:
    queue = queue_of(seeds=1)
    wrong = JobState("wrong", message="another config")
    fresh = JobQueue(queue.jobs, {**queue.states, 1: wrong})
    assert fresh.failed == {1: "another config"}
    assert start(fresh) == 3
    end(fresh, 3, 0, wrong)
    assert fresh.failed == {1: "another config", 3: "another config"}
    assert not fresh.unfinished

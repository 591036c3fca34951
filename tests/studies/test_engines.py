"""Attempts and the local engine, with real processes of a moment instead of searches."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from prnas.runs.signals import LIFELINE
from prnas.studies.attempt import Ended, Slot, Task, attempt
from prnas.studies.engines import LocalEngine
from prnas.studies.locks import JobLock, is_locked
from tests.support.made_jobs import HERE, PATIENT, TIMEOUT, all_ended, task, wait_for

# ---------------------------------------------------------------- one attempt


def test_a_task_can_be_sent_as_json(tmp_path: Path) -> None:
    job = task(tmp_path, "pass")
    assert Task.from_data(json.loads(json.dumps(job.to_data()))) == job


def test_an_attempt_has_its_place_a_log_and_a_note(tmp_path: Path) -> None:
    code = f"import sys; print(sys.argv[1:], os.environ['PLACE'], os.environ[{LIFELINE!r}])"
    ended = attempt(task(tmp_path, code), HERE)
    assert (ended.code, ended.message) == (0, "")
    assert (tmp_path / "r" / "1.log").read_text() == "['new'] here 1\n"
    note = (tmp_path / "attempts.jsonl").read_text()
    assert '"job": "r/1"' in note
    assert '"code": 0' in note


def test_a_failed_attempt_says_why(tmp_path: Path) -> None:
    code = "import sys; print('prnas: the disk is full', file=sys.stderr); print('x'); sys.exit(2)"
    ended = attempt(task(tmp_path, code), HERE)
    assert (ended.code, ended.message) == (2, "the disk is full")
    code = "print('last words', flush=True); os.kill(os.getpid(), 9)"
    ended = attempt(task(tmp_path, code), HERE)
    assert (ended.code, ended.message) == (-9, "last words")


def test_a_program_that_is_not_there_is_an_end_too(tmp_path: Path) -> None:
    ended = attempt(replace(task(tmp_path, ""), program=("/nowhere/at/all",)), HERE)
    assert ended.code == 2
    assert "No such file" in ended.message


def test_progress_is_counted_in_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "r" / "1" / "checkpoints" / "000004").mkdir(parents=True)
    for name in ("config.yaml", "records.jsonl"):
        (tmp_path / "r" / "1" / name).touch()
    code = "import sys; os.mkdir('r/1/checkpoints/000006'); print(sys.argv[1])"
    ended = attempt(task(tmp_path, code), HERE)
    assert ended.progress == 2
    assert (tmp_path / "r" / "1.log").read_text() == "again\n"


def test_a_folder_without_a_run_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "r" / "1").mkdir(parents=True)
    ended = attempt(task(tmp_path, "import sys; print(sys.argv[1])"), HERE)
    assert ended.code == 0
    assert (tmp_path / "r" / "1.log").read_text() == "new\n"
    assert len(list((tmp_path / "r").glob("unfinished-1-*"))) == 1


def test_a_job_runs_once_at_a_time(tmp_path: Path) -> None:
    job = task(tmp_path, "pass")
    lock = JobLock(job.lock)
    assert is_locked(job.lock)
    assert attempt(job, HERE).code is None
    lock.release()
    assert not is_locked(job.lock)
    assert attempt(job, HERE).code == 0


@pytest.mark.skipif(os.name != "posix", reason="locks are inherited where there is flock")
def test_a_job_keeps_its_lock_when_its_parent_is_killed(tmp_path: Path) -> None:
    """It saves and ends by itself; until then nobody starts it a second time."""
    job = task(tmp_path, PATIENT + "\n")
    slow = PATIENT.replace("sys.stdin.read()", "sys.stdin.read(); import time; time.sleep(1)")
    program = (
        "import sys; from pathlib import Path\n"
        "from tests.support.made_jobs import HERE, task\n"
        "from prnas.studies.attempt import attempt\n"
        f"attempt(task(Path({str(tmp_path)!r}), {slow!r}), HERE)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=Path(__file__).parents[2])
    wait_for(tmp_path / "begun")
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert is_locked(job.lock)
    assert attempt(job, HERE).code is None
    wait_for(tmp_path / "saved")
    deadline = time.monotonic() + TIMEOUT
    while is_locked(job.lock):
        assert time.monotonic() < deadline
        time.sleep(0.01)


# ---------------------------------------------------------------- the local engine


def test_each_place_has_one_job_at_a_time(tmp_path: Path) -> None:
    code = (
        "import time, sys\n"
        "mine = 'place-' + os.environ['PLACE']\n"
        "os.mkdir(mine); time.sleep(0.1); os.rmdir(mine)"
    )
    engine = LocalEngine([Slot(name, {"PLACE": name}) for name in ("a", "b")])
    assert engine.num_slots == 2
    jobs = [task(tmp_path, code, number) for number in range(1, 9)]
    ended: list[Ended] = []
    under_way = 0
    for job in jobs:
        while under_way == engine.num_slots:
            news = engine.wait(TIMEOUT)
            ended += news
            under_way -= len(news)
        engine.start(job)
        under_way += 1
    ended += all_ended(engine, under_way)
    assert sorted(end.task.number for end in ended) == list(range(1, 9))
    assert [end.code for end in ended] == [0] * 8, [end.message for end in ended]


def test_stopping_lets_jobs_save_and_waits_for_them(tmp_path: Path) -> None:
    engine = LocalEngine([HERE])
    engine.start(task(tmp_path, PATIENT))
    wait_for(tmp_path / "begun")
    assert engine.wait(0.05) == []
    engine.stop()
    (ended,) = all_ended(engine, 1)
    assert ended.code == 143
    assert (tmp_path / "saved").exists()


def test_closing_leaves_no_process(tmp_path: Path) -> None:
    engine = LocalEngine([HERE])
    job = task(tmp_path, PATIENT)
    engine.start(job)
    wait_for(tmp_path / "begun")
    engine.close()
    assert (tmp_path / "saved").exists()
    assert not is_locked(job.lock)


def test_a_job_that_is_started_while_stopping_is_stopped_too(tmp_path: Path) -> None:
    engine = LocalEngine([HERE])
    engine.stop()
    engine.start(task(tmp_path, PATIENT))
    (ended,) = all_ended(engine, 1)
    assert ended.code == 143

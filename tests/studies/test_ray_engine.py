"""The engine `ray`, with a real Ray: one of the engine's own, and a cluster by its address."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from prnas.io.errors import UserError
from prnas.studies import ray_engine
from prnas.studies.config import StudyConfig
from prnas.studies.engines import Engine
from prnas.studies.locks import is_locked
from tests.support.made_jobs import PATIENT, TIMEOUT, all_ended, task, wait_for
from tests.support.ray_cluster import need_ray, ray_cluster


def study(**engine: Any) -> StudyConfig:
    return StudyConfig.from_data(
        {"rows": [{"name": "a", "cell": "darts-v2"}], "engine": {"name": "ray", **engine}}
    )


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def job_of(folder: Path) -> psutil.Process:
    """The process of a job that wrote its id."""
    wait_until(lambda: (folder / "pid").exists() and (folder / "pid").read_text().isdecimal())
    return psutil.Process(int((folder / "pid").read_text()))


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [one for one in processes if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


SAYS_WHO = "open('pid', 'w').write(str(os.getpid()))\n" + PATIENT


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    need_ray()
    with ray_cluster() as (address, key), pytest.MonkeyPatch.context() as patch:
        for name, value in key.items():
            patch.setenv(name, value)
        yield address


@pytest.fixture
def engine(address: str) -> Iterator[Engine]:
    engine, share = ray_engine.start_ray(study(address=address))
    assert engine.num_slots == len(share.slots) == 2
    yield engine
    engine.close()


def test_a_cluster_makes_attempts_and_tells_their_ends(engine: Engine, tmp_path: Path) -> None:
    said = (
        "import sys\n"
        "print(sys.argv[1], os.environ['OMP_NUM_THREADS'], 'RAY_AUTH_TOKEN' in os.environ)"
    )
    engine.start(task(tmp_path, said, 1))
    engine.start(task(tmp_path, "print('prnas: the disk is full'); exit(2)", 2))
    engine.start(task(tmp_path, "os.mkdir('r/3'); os.makedirs('r/3/checkpoints/000002')", 3))
    ended = sorted(all_ended(engine, 3), key=lambda one: one.task.number)
    assert [one.code for one in ended] == [0, 2, 0]
    assert [one.message for one in ended] == ["", "the disk is full", ""]
    assert [one.progress for one in ended] == [0, 0, 2]
    assert (tmp_path / "r" / "1.log").read_text() == "new 1 False\n"
    assert '"place": "Ray, ' in (tmp_path / "attempts.jsonl").read_text()


def test_a_job_whose_worker_is_killed_saves_and_ends(engine: Engine, tmp_path: Path) -> None:
    job = task(tmp_path, SAYS_WHO)
    engine.start(job)
    process = job_of(tmp_path)
    wait_for(tmp_path / "begun")
    worker = process.parent()
    assert worker is not None
    worker.kill()
    (ended,) = all_ended(engine, 1)
    assert ended.code == -9
    assert "its Ray worker was lost: " in ended.message
    wait_for(tmp_path / "saved")
    wait_until(lambda: not is_locked(job.lock))
    engine.start(task(tmp_path, "pass"))
    assert [one.code for one in all_ended(engine, 1)] == [0]


def test_stopping_lets_jobs_save_and_forgets_those_without_room(
    engine: Engine, tmp_path: Path
) -> None:
    jobs = [task(tmp_path, PATIENT.replace("begun", f"begun-{n}"), n) for n in range(1, 5)]
    for job in jobs:
        engine.start(job)
    wait_until(lambda: len(list(tmp_path.glob("begun-*"))) == 2)
    engine.stop()
    ended = all_ended(engine, 4)
    assert {one.code for one in ended} == {143}
    assert len(list(tmp_path.glob("begun-*"))) == 2, "two had no room, and are not started now"
    assert not any(is_locked(job.lock) for job in jobs)


@pytest.mark.slow
def test_a_killed_study_leaves_nothing(address: str, tmp_path: Path) -> None:
    """Its jobs save and end, and so does the process that spoke to Ray."""
    program = (
        "import sys, time; from pathlib import Path\n"
        "from prnas.studies import ray_engine\n"
        "from tests.studies.test_engines import task\n"
        "from tests.studies.test_ray_engine import SAYS_WHO, study\n"
        f"engine, _ = ray_engine.start_ray(study(address={address!r}))\n"
        f"engine.start(task(Path({str(tmp_path)!r}), SAYS_WHO))\n"
        "time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=Path(__file__).parents[2])
    job = job_of(tmp_path)
    wait_for(tmp_path / "begun")
    children = psutil.Process(parent.pid).children(recursive=True)
    assert children
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_for(tmp_path / "saved")
    wait_until(lambda: not alive([job, *children]))


def test_a_ray_of_its_own_needs_no_set_up_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_ray()
    monkeypatch.setenv("HOME", str(tmp_path))
    engine, share = ray_engine.start_ray(study())
    ours = psutil.Process().children(recursive=True)
    driver = next(one for one in ours if "prnas.studies.ray_driver" in one.cmdline())
    processes = [driver, *driver.children(recursive=True)]
    raylet = next(one for one in processes if one.name() == "raylet")
    folder = Path(raylet.environ()["RAY_TMPDIR"])
    assert engine.num_slots == len(share.slots)
    job = task(tmp_path, SAYS_WHO)
    engine.start(job)
    own = job_of(tmp_path)
    wait_for(tmp_path / "begun")
    driver.kill()  # With it goes its Ray, and the job's worker.
    with pytest.raises(UserError, match=r"was lost \(its process ended with code -9\); everything"):
        all_ended(engine, 1)
    engine.close()
    assert (tmp_path / "saved").exists()
    assert not is_locked(job.lock)
    wait_until(lambda: not alive([own, *processes]))
    assert not folder.exists()
    assert not (tmp_path / ".ray").exists(), "no key is left in the user's home"


# ---------------------------------------------------------------- what cannot be used


@pytest.fixture
def nothing_stays() -> Iterator[None]:
    """No process that a test started is there after it; the cluster of other tests may be."""
    before = set(psutil.Process().children())
    yield

    def new() -> list[psutil.Process]:
        found: list[psutil.Process] = []
        for child in set(psutil.Process().children()) - before:
            with suppress(psutil.Error):  # It has ended just now.
                found += [child, *child.children(recursive=True)]
        return found

    wait_until(lambda: not alive(new()))


@pytest.mark.usefixtures("nothing_stays")
def test_a_ray_that_is_not_ready_in_time_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    need_ray()
    monkeypatch.setattr(ray_engine, "START", 1.0)
    with pytest.raises(UserError, match=r"a Ray of our own: it was not ready after 1 s"):
        ray_engine.start_ray(study())


@pytest.mark.usefixtures("nothing_stays")
def test_a_ray_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    need_ray()
    long = {"RAY_TMPDIR": str(tmp_path / ("x" * 100))}  # A socket's path cannot be that long.
    monkeypatch.setattr(ray_engine, "OWN", {**ray_engine.OWN, **long})
    with pytest.raises(UserError, match=r"cannot use a Ray of our own: .*107 bytes"):
        ray_engine.start_ray(study())


def test_an_address_that_does_not_answer_is_one_message() -> None:
    need_ray()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(UserError, match=f"no Ray cluster answers at 127.0.0.1:{port}: "):
        ray_engine.start_ray(study(address=f"127.0.0.1:{port}"))


@pytest.mark.usefixtures("nothing_stays")
def test_something_else_at_the_address_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    need_ray()
    monkeypatch.setattr(ray_engine, "CONNECT", 3.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(UserError, match=f"cannot use the Ray cluster at {address}: "):
            ray_engine.start_ray(study(address=address))


def test_a_wrong_address_in_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    need_ray()
    monkeypatch.setenv("RAY_ADDRESS", "ray://somewhere")
    with pytest.raises(UserError, match="RAY_ADDRESS: an address is auto"):
        ray_engine.start_ray(study())


def test_a_missing_ray_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match="pip install ray "):
        ray_engine.start_ray(study())

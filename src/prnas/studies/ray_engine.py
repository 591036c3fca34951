"""The engine `ray`: jobs on the machines of a Ray cluster, or of one of our own on this machine.

Ray itself runs in a process of its own (`ray_driver.py`); this side asks it for attempts. If that
process is lost, the study ends with a message. Jobs end with their Ray worker, as always by the end
of their standard input, after they have saved.
"""

import importlib.util
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import psutil

from prnas.io.errors import UserError
from prnas.io.extras import how_to_install
from prnas.studies.attempt import Ended, Task
from prnas.studies.config import StudyConfig, check_address
from prnas.studies.engines import Engine
from prnas.studies.folder import progress_of
from prnas.studies.locks import is_locked
from prnas.studies.machine import Node, Share, share_out, share_out_nodes, visible_gpus

START = 120.0  # Seconds that Ray has to start.
ANSWER = 5.0  # Seconds that an address has to answer.
CONNECT = 60.0  # Seconds that a cluster has to let us in.
END = 60.0  # Seconds after which what does not end is left to itself.
_LONGEST_FOLDER = 38  # Characters of a folder for sockets, whose whole path must have at most 107.
# The environment of our own Ray. Jobs have memory limits, and end by themselves with their worker.
OWN = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_kill_child_processes_on_worker_exit": "false",
}


def start_ray(study: StudyConfig) -> tuple[Engine, Share]:
    """Start a Ray on this machine, or connect to the one at the study's address."""
    if importlib.util.find_spec("ray") is None:
        raise UserError(f"the engine ray needs Ray: {how_to_install('ray')}")
    address = study.engine.address
    if address is None and os.environ.get("RAY_ADDRESS"):
        address = _checked("RAY_ADDRESS", os.environ["RAY_ADDRESS"])
    if address is None:
        share = share_out(study)
        cpus, gpus = share.threads * len(share.slots), len(visible_gpus()) if share.gpus else 0
        driver = _RayProcess(None, cpus, gpus)
        return RayEngine(driver, share, lambda nodes: len(share.slots)), share
    _check_answers(address)
    driver = _RayProcess(address)
    try:
        share = share_out_nodes(study, driver.nodes)
    except UserError:
        driver.end()
        raise

    def slots(nodes: list[Node]) -> int:
        try:
            return len(share_out_nodes(study, nodes).slots)
        except UserError:
            return 0  # For now: machines may come back.

    return RayEngine(driver, share, slots), share


def _checked(name: str, address: str) -> str:
    try:
        return check_address(address)
    except ValueError as error:
        raise UserError(f"{name}: {error}") from None


def _check_answers(address: str) -> None:
    """Ray would wait for minutes."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"no Ray cluster answers at {address}: {reason}") from None


class _RayProcess:
    """The process that speaks to Ray, and what it says."""

    def __init__(self, address: str | None, cpus: int = 0, gpus: int = 0) -> None:
        """Return when Ray is ready, or raise a `UserError`."""
        self._where = "a Ray of our own" if address is None else f"the Ray cluster at {address}"
        self._folder = _short_folder()
        self._log = self._folder / "driver.log"
        self.messages: SimpleQueue[dict[str, Any]] = SimpleQueue()
        environment = dict(os.environ)
        if address is None:
            for name in [name for name in environment if name.startswith("RAY_")]:
                del environment[name]
            # A key in memory: by default Ray would leave one in the user's home.
            key = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
            environment |= {"RAY_TMPDIR": str(self._folder), **key, **OWN}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "prnas.studies.ray_driver"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                text=True,
                encoding="utf-8",
                start_new_session=True,  # Ctrl-C is for the study.
            )
        threading.Thread(target=self._read, daemon=True).start()
        folder, cwd = str(self._folder), str(Path.cwd())
        self.send(address=address, cpus=cpus, gpus=gpus, folder=folder, cwd=cwd)
        self.nodes = self._ready(START if address is None else CONNECT)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with suppress(ValueError, OSError):
            for line in self._process.stdout:
                self.messages.put(json.loads(line))
        self.messages.put({"gone": True})

    def _ready(self, seconds: float) -> list[Node]:
        try:
            message = self.messages.get(timeout=seconds)
            problem = message.get("problem") or self.last_words() or self._code()
        except Empty:
            message, problem = {}, f"it was not ready after {seconds:g} s"
        except BaseException:  # Ctrl-C, while we wait.
            self.end(0)
            raise
        if "nodes" in message:
            return nodes_of(message)
        self.end(0)
        raise UserError(f"cannot use {self._where}: {problem}")

    def last_words(self) -> str:
        """The last line that the process wrote to its log, for a message."""
        with suppress(OSError):
            lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
            return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")
        return ""

    def lost(self) -> UserError:
        advice = "everything is saved: start the study again to go on"
        return UserError(f"{self._where} was lost ({self._code()}); {advice}")

    def _code(self) -> str:
        with suppress(subprocess.TimeoutExpired):  # It has hung up, so it is about to end.
            self._process.wait(ANSWER)
        return f"its process ended with code {self._process.returncode}"

    def send(self, **message: Any) -> None:
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):  # `messages` has its end.
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def end(self, seconds: float = END) -> None:
        """Let it end, and all that it started; after so many seconds, make it."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        _kill_session(self._process.pid)
        shutil.rmtree(self._folder, ignore_errors=True)


def nodes_of(message: dict[str, Any]) -> list[Node]:
    return [Node(**node) for node in message["nodes"]]


def _short_folder() -> Path:
    name = Path(tempfile.gettempdir())
    if len(str(name)) > _LONGEST_FOLDER - len("/prnas-ray-12345678") and Path("/tmp").is_dir():  # noqa: S108
        name = Path("/tmp")  # noqa: S108
    return Path(tempfile.mkdtemp(prefix="prnas-ray-", dir=name))


def _kill_session(leader: int) -> None:
    """Whatever Ray left behind of the session that its first process led; jobs have their own."""
    if hasattr(os, "getsid"):
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if os.getsid(process.pid) == leader:
                    process.kill()


class RayEngine:
    """Jobs in processes of Ray's. `num_slots` of a cluster follow the machines that it has."""

    def __init__(
        self, process: _RayProcess, share: Share, slots: Callable[[list[Node]], int]
    ) -> None:
        self.num_slots = len(share.slots)
        self._process, self._count = process, slots
        self._environment = dict(share.slots[0].environment)
        self._needs: dict[str, float] = {"num_cpus": share.threads, "num_gpus": share.gpus}
        self._under_way: dict[int, tuple[Task, int, float]] = {}
        self._closed = False

    def start(self, task: Task) -> None:
        self._under_way[task.number] = (task, progress_of(task.run), time.monotonic())
        self._process.send(task=task.to_data(), environment=self._environment, needs=self._needs)

    def wait(self, seconds: float) -> list[Ended]:
        results: list[Ended] = []
        with suppress(Empty):
            while True:
                message = self._process.messages.get(timeout=0 if results else seconds)
                if "ended" in message:
                    results.append(self._ended(*message["ended"]))
                elif "nodes" in message:
                    self.num_slots = self._count(nodes_of(message))
                elif self._under_way or not self._closed:
                    raise self._process.lost()
        return results

    def _ended(
        self, number: int, code: int | None, seconds: float, progress: int | None, message: str
    ) -> Ended:
        task, before, began = self._under_way.pop(number)
        if progress is None:  # A worker was lost: its folder tells.
            progress, seconds = progress_of(task.run) - before, time.monotonic() - began
        return Ended(task, code, seconds, progress, message)

    def stop(self) -> None:
        self._process.send(stop=True)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._process.end()
        # Jobs of workers that were lost are saving; their locks tell until when.
        deadline = time.monotonic() + END
        locks = [task.lock for task, _, _ in self._under_way.values()]
        while any(is_locked(lock) for lock in locks) and time.monotonic() < deadline:
            time.sleep(0.05)

"""One attempt at a job: its process, from the lock to the end. The same on any machine."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from filelock import Timeout

from prnas.config import recipes
from prnas.io.errors import FormatError, UserError
from prnas.runs.integrity import config_digest, is_begun, read_config_data
from prnas.runs.names import CONFIG, LOCK
from prnas.runs.signals import LIFELINE
from prnas.studies.folder import progress_of
from prnas.studies.locks import JobLock, is_run_locked
from prnas.studies.names import ATTEMPTS

_LOG_END = 4096  # Bytes of a log in which its last message is looked for.


@dataclass(frozen=True, slots=True)
class Task:
    """All that a machine needs to make an attempt at a job; it can be sent to another one."""

    number: int  # The job's number.
    job: str  # The run's folder, in the study's.
    study: Path
    lock: Path
    start: tuple[str, ...]  # Arguments of a new run.
    resume: tuple[str, ...]  # Arguments of a run that goes on.
    config: str  # The digest of the config that the run must have.
    program: tuple[str, ...] = ()  # Instead of the `prnas` of that machine.
    module: str = "prnas"  # What that machine's Python runs.

    @property
    def run(self) -> Path:
        return self.study / self.job

    def to_data(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {**asdict(self), "study": str(self.study), "lock": str(self.lock)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        fields: dict[str, Any] = dict(data)
        for key in ("start", "resume", "program"):
            fields[key] = tuple(data[key])
        for key in ("study", "lock"):
            fields[key] = Path(data[key])
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class Slot:
    """A share of a machine for one job at a time: CPUs or GPUs, by environment variables."""

    name: str
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of an attempt. Whether the job is done, only its folder can tell."""

    task: Task
    code: int | None  # `None`: it was not started, since the job is under way elsewhere.
    seconds: float = 0.0
    progress: int = 0  # Checkpoints that were written.
    message: str = ""


def attempt(
    task: Task, slot: Slot, started: Callable[["subprocess.Popen[bytes]"], None] | None = None
) -> Ended:
    """Start a job or go on with it, and wait for its end. It ends itself when its parent does.

    Closing its standard input asks it to save and stop; `started` receives the process for that.
    """
    try:
        lock = JobLock(task.lock)
    except Timeout:
        return Ended(task, None)
    except OSError as error:
        return Ended(task, 2, message=f"cannot write {task.lock}: {error.strerror}")
    try:
        if is_run_locked(task.run / LOCK):
            return Ended(task, None)
        return _attempt(task, slot, lock.handle, started)
    except UserError as error:
        return Ended(task, 2, message=str(error))
    except OSError as error:
        return Ended(task, 2, message=f"cannot start {task.job}: {error.strerror or error}")
    finally:
        lock.release()


def _attempt(
    task: Task,
    slot: Slot,
    handle: int | None,
    started: Callable[["subprocess.Popen[bytes]"], None] | None,
) -> Ended:
    arguments = task.resume if _goes_on(task) else task.start
    before, began = progress_of(task.run), time.monotonic()
    log = task.run.with_name(f"{task.run.name}.log")
    with log.open("ab") as output:
        log_begin = output.tell()
        process = subprocess.Popen(  # noqa: S603
            [*(task.program or (sys.executable, "-m", task.module)), *arguments],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**_environment(), **slot.environment, LIFELINE: "1"},
            pass_fds=() if handle is None else (handle,),
            start_new_session=True,  # Ctrl-C is for the study, which lets its jobs save and end.
        )
    try:
        if started is not None:
            started(process)
        code = process.wait()
    finally:
        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.close()
        process.wait()
    seconds = time.monotonic() - began
    message = "" if code == 0 else _last_message(log, log_begin)
    ended = Ended(task, code, seconds, progress_of(task.run) - before, message)
    _note(ended, slot, arguments)
    return ended


def _environment() -> dict[str, str]:
    """Our environment without Ray's variables, among them the key to its cluster."""
    return {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}


def _goes_on(task: Task) -> bool:
    """Whether there is a run to go on with; what is none of the study's is set aside."""
    if not is_begun(task.run):
        return False
    if progress_of(task.run):
        return True
    # Nothing was computed. Its row may have been changed in the study's file since.
    try:
        config = recipes.config_from_data(read_config_data(task.run / CONFIG))
        if config_digest(config.to_data()) == task.config:
            return True
    except (UserError, FormatError):
        pass
    os.replace(task.run, task.run.with_name(f"unfinished-{task.run.name}-{time.time_ns():x}"))
    return False


def _last_message(log: Path, begin: int) -> str:
    """The last message of a job, or its last line. `begin`: where its log begins."""
    try:
        with log.open("rb") as file:
            file.seek(max(begin, log.stat().st_size - _LOG_END))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    spoken = [line.removeprefix("prnas: ") for line in lines if line.startswith("prnas: ")]
    return next(iter([*reversed(spoken), *reversed(lines)]), "")


def _note(ended: Ended, slot: Slot, arguments: tuple[str, ...]) -> None:
    """A line for people, in a file that nobody reads back to decide."""
    now = datetime.now().astimezone()
    line = {
        "job": ended.task.job,
        "host": socket.gethostname(),
        "place": slot.name,
        "ended": now.isoformat(timespec="seconds"),
        "seconds": round(ended.seconds, 3),
        "code": ended.code,
        "checkpoints": ended.progress,
        "command": list(arguments),
        "message": ended.message,
    }
    with suppress(OSError), (ended.task.study / ATTEMPTS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")

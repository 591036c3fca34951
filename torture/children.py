"""prnas in processes of their own, forked from one that has imported it: a start takes no time.

A child is a process like any other: killed, it leaves whatever a kill leaves.
"""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import prnas.retraining.api
import prnas.searching.api  # noqa: F401 - heavy: imported once, before all forks
from prnas.cli import main
from prnas.runs.records_file import RecordsFile
from prnas.runs.signals import guard

TIMEOUT = 120.0


@dataclass
class Child:
    """A running command, and the file that it writes to."""

    pid: int
    log: Path
    code: int | None = None  # negative for signals

    def poll(self) -> int | None:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def wait(self, timeout: float = TIMEOUT) -> int:
        """Its exit code; one that takes too long is an error, and is killed."""
        end = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > end:
                self.kill()
                raise AssertionError(f"still running after {timeout:.0f} s:\n{self.said}")
            time.sleep(0.002)
        assert self.code is not None
        return self.code

    def send(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        while self.poll() is None:
            time.sleep(0.001)

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


def start(
    arguments: list[object], folder: Path, prepare: Callable[[], None] = lambda: None
) -> Child:
    """Run `prnas ARGUMENTS` in a folder. `prepare` is called in the child: it may break things."""
    log = folder / f"log-{time.monotonic_ns()}.txt"
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return Child(pid, log)
    code = 70
    try:
        handle = os.open(log, os.O_WRONLY | os.O_CREAT, 0o644)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        os.chdir(folder)
        guard(runs=True)  # as the console command does
        prepare()
        main([str(argument) for argument in arguments])
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                code = code or 1
        os._exit(code)


def kill_in_record(number: int) -> Callable[[], None]:
    """For `prepare`: the process kills itself in the midst of writing the n-th record."""

    def prepare() -> None:
        calls = 0
        real = RecordsFile.write

        def write(self: Any, line: bytes) -> None:
            nonlocal calls
            calls += 1
            if calls == number:
                with self.path.open("ab") as file:
                    file.write(line[: len(line) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            real(self, line)

        RecordsFile.write = write

    return prepare


def kill_at_call(number: int) -> Callable[[], None]:
    """For `prepare`: the process kills itself at the n-th sync or rename of a file."""

    def prepare() -> None:
        calls = 0

        def deadly(real: Callable[..., object]) -> Callable[..., object]:
            def run(*arguments: object, **options: object) -> object:
                nonlocal calls
                calls += 1
                if calls == number:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*arguments, **options)

            return run

        os.fsync = deadly(os.fsync)  # type: ignore[assignment]
        os.replace = deadly(os.replace)  # type: ignore[assignment]

    return prepare

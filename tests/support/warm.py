"""`prnas` in processes forked from one that has imported everything: loading PyTorch takes seconds.

They are processes like any other: signals, exit codes, what they print and how they end are real.
Only the imports are done. What must be fresh is started by `subprocess` instead.
"""

import atexit
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_SERVE = "import sys; from tests.support.warm import serve; serve(int(sys.argv[1]))"
_LOOK = 0.005  # seconds


class WarmProcess:
    """As much of `subprocess.Popen` as tests use."""

    def __init__(self, pid: int, output: Path) -> None:
        self.pid, self._output = pid, output
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = _server().ask({"poll": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                self.kill()
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            time.sleep(_LOOK)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        self.wait(timeout)
        return self._read("out"), self.error

    @property
    def error(self) -> str:
        """What it has printed there so far."""
        return self._read("err")

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _read(self, name: str) -> str:
        return (self._output / name).read_text(encoding="utf-8", errors="replace")


def start(*words: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> WarmProcess:
    """As `python WORDS`, which begin with `-m MODULE` or `-c PROGRAM`."""
    output = Path(tempfile.mkdtemp(prefix="warm-", dir=_server().folder))
    request = {
        "words": words,
        "cwd": str(cwd or Path.cwd()),
        "env": {**os.environ, **(env or {})},
        "output": str(output),
    }
    return WarmProcess(_server().ask(request), output)


class _Server:
    """The process that all others are forked from; it ends with this one."""

    def __init__(self) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="prnas-warm-")
        self.folder = Path(self._temporary.name)
        ours, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, str(theirs.fileno())],
            cwd=ROOT,
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self._socket, self._file = ours, ours.makefile("r")

    def ask(self, request: dict[str, Any]) -> Any:
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        return json.loads(self._file.readline())


@cache
def _server() -> _Server:
    return _Server()


def serve(handle: int) -> None:
    """Fork processes as the other end of a socket asks for, until it is closed."""
    import prnas.retraining.api
    import prnas.searching.api
    import prnas.terminal.display  # noqa: F401 - whatever is heavy

    gc.collect()
    gc.freeze()  # else every process would copy all of it, only to look at it at its end
    requests = socket.socket(fileno=handle)
    with requests, requests.makefile("r") as file:
        for line in file:
            request = json.loads(line)
            if "poll" in request:
                pid, status = os.waitpid(request["poll"], os.WNOHANG)
                answer = os.waitstatus_to_exitcode(status) if pid else None
            else:
                answer = os.fork()
            if answer == 0 and "words" in request:
                break
            requests.sendall(json.dumps(answer).encode() + b"\n")
        else:
            return
    _run(**request)


def _run(words: list[str], cwd: str, env: dict[str, str], output: str) -> None:
    """In a forked process: become that command."""
    for number, name in ((1, "out"), (2, "err")):
        opened = os.open(Path(output, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    option, program, *arguments = words
    sys.orig_argv = [sys.executable, *words]
    sys.argv = ["-c" if option == "-c" else program, *arguments]
    code = 0
    try:
        if option == "-c":
            exec(program, {"__name__": "__main__"})  # noqa: S102 - the test's own
        else:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    # As Python ends, but for taking all modules apart: that takes a second.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

"""The processes of a run on one machine: the first starts the others, and none outlives a fault.

Fabric could start them too, but it kills the whole run without a word when one of them fails.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

from lightning_fabric.plugins.environments.cluster_environment import ClusterEnvironment

from prnas.runs.signals import EXIT

LAUNCHER = "PRNAS_LAUNCHER"  # environment variable of a started process: the launcher's id
GRACE = 30.0  # seconds in which a process should notice by itself that another is gone
_LOOK = 0.5  # seconds
_STOPPED = (EXIT + signal.SIGINT, EXIT + signal.SIGTERM)
_REAP = 2.0  # seconds between a process's closed connections and its end


class Siblings:
    """The other processes of a run that prnas started; those of torchrun are not watched."""

    def __init__(self, children: list[subprocess.Popen[bytes]], launcher: int | None) -> None:
        self.children, self.launcher = children, launcher
        self.joined = False  # all have found each other: from now on, one may end well
        self.hint = ""  # how to go on with a run that a lost process ended
        self.under_way = threading.Event()  # a run: as long as it is set, none may end
        if children or launcher is not None:
            threading.Thread(target=self._watch, name="prnas-others", daemon=True).start()

    def end(self) -> None:
        """End what this process started: without the first process, they would wait in vain."""
        for child in self.children:
            with suppress(OSError):
                child.kill()  # SIGKILL ends even one that was stopped.
        for child in self.children:
            with suppress(subprocess.TimeoutExpired):
                child.wait(_REAP)

    def message(self, waited: str | None) -> str:
        """A message on the lost process. `waited`: how long it was silent; `None`: it hung up."""
        deadline = time.monotonic() + _REAP
        while waited is None and not self._gone() and time.monotonic() < deadline:
            time.sleep(0.02)
        what = self._gone()
        if not what and waited is not None:
            what = f"{self._all()} gave no answer for {waited}: it is stalled, or far too slow"
        if not what:
            what = f"the connection to {self._all()} broke: it has ended"
        return f"{what}. {self.hint or 'Nothing was saved.'}"

    def _all(self) -> str:
        """The others; with two processes it is clear which."""
        if len(self.children) == 1:
            return "process 1"
        pair = self.launcher is not None and os.environ.get("WORLD_SIZE") == "2"
        return "process 0" if pair else "another process"

    def _gone(self) -> str:
        """The first of the others that is not there any more, if one is."""
        if self.launcher is not None and os.name == "posix" and os.getppid() != self.launcher:
            return "process 0 has ended"
        for rank, child in enumerate(self.children, start=1):
            code = child.poll()
            if code is None or (code == 0 and self.joined):
                continue
            if code < 0:
                return f"process {rank} was killed by {_signal_name(-code)}"
            return f"process {rank} ended unexpectedly (exit code {code})"
        return ""

    def _watch(self) -> None:
        """End this process when another is gone, should it not notice: deep in a library, say."""
        while True:
            time.sleep(_LOOK)
            if not self.under_way.is_set() or not self._gone():
                continue
            deadline = time.monotonic() + (GRACE if self.joined else _REAP)
            while self.under_way.is_set() and time.monotonic() < deadline:
                time.sleep(_LOOK)
            if self.under_way.is_set():
                self._exit()

    def _exit(self) -> None:
        text, code = self.message(None), 2
        # Ctrl-C reaches all: one that had not joined yet left at once, as this one has to.
        stopped = [child.returncode for child in self.children if child.returncode in _STOPPED]
        if stopped and not self.joined:
            text, code = f"stopped before all processes were there. {self.hint}".strip(), stopped[0]
        self.end()
        with suppress(Exception):
            sys.stdout.flush()
        with suppress(Exception):
            shown = "\x1b[?25h" if sys.stderr.isatty() else ""  # a display may have hidden it
            print(f"{shown}prnas: {text}", file=sys.stderr, flush=True)
        os._exit(code)


_others: Siblings | None = None  # a program is launched once, however many runs it has


def start_siblings(environment: ClusterEnvironment | None, number: int) -> Siblings:
    """The processes of this machine that are still missing, by this program's own command."""
    global _others
    if _others is not None:
        return _others
    if environment is None or number == 1:
        return Siblings([], None)
    if environment.creates_processes_externally:  # by us, by torchrun, or by a cluster
        launcher = os.environ.get(LAUNCHER)
        _others = Siblings([], int(launcher) if launcher is not None else None)
    else:
        _others = Siblings(_started(environment, number), None)
    return _others


def _started(environment: ClusterEnvironment, number: int) -> list[subprocess.Popen[bytes]]:
    os.environ["MASTER_ADDR"] = environment.main_address
    os.environ["MASTER_PORT"] = str(environment.main_port)
    os.environ["NODE_RANK"] = str(environment.node_rank())
    os.environ["WORLD_SIZE"] = str(number)
    os.environ["LOCAL_RANK"] = "0"  # tells Fabric that everything is started
    children: list[subprocess.Popen[bytes]] = []
    try:
        for rank in range(1, number):
            own = {**os.environ, "LOCAL_RANK": str(rank), LAUNCHER: str(os.getpid())}
            command = [sys.executable, *sys.orig_argv[1:]]
            children.append(
                subprocess.Popen(command, env=own, stdin=subprocess.DEVNULL)  # noqa: S603
            )
    except BaseException:
        Siblings(children, None).end()
        raise
    return children


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

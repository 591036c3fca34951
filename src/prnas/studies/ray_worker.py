"""An attempt at a job in a process of Ray's, on whichever machine it chose."""

import os
import socket
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prnas.studies.attempt import Ended, Slot, Task, attempt
from prnas.studies.engines import end_of_input


class RayWorker:
    """A Ray actor for one attempt. Its methods are called from several threads at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = False

    def here(self) -> str:
        """The machine's name. An answer says that the worker has begun."""
        return socket.gethostname()

    def run(self, data: Mapping[str, Any], environment: Mapping[str, str], cwd: str) -> list[Any]:
        """Make the attempt, with plain data in and out: exit code, seconds, progress, message."""
        task, host = Task.from_data(data), self.here()
        for folder in (cwd, task.study):
            if not Path(folder).is_dir():
                return [2, 0.0, 0, f"{host} has no {folder}: all machines need the same folders"]
        os.chdir(cwd)
        ended = attempt(task, Slot(f"Ray, {host}", environment), self._started)
        return _plain(ended)

    def _started(self, process: "subprocess.Popen[bytes]") -> None:
        with self._lock:
            self._process = process
            if self._stopping:
                end_of_input(process)

    def stop(self) -> None:
        """Ask the job to save and end."""
        with self._lock:
            self._stopping = True
            if self._process is not None:
                end_of_input(self._process)


def _plain(ended: Ended) -> list[Any]:
    return [ended.code, ended.seconds, ended.progress, ended.message]

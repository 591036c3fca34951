"""Jobs of a study as processes that are forked, not started: loading PyTorch takes seconds each."""

import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

from prnas.runs.signals import LIFELINE
from tests.support import warm

_ASKING = threading.Lock()  # A study starts jobs in threads; the server answers one at a time.


class WarmJob:
    """As much of `subprocess.Popen` as `prnas.studies.attempt` uses, for jobs that end well."""

    def __init__(
        self, command: Sequence[str], *, stdout: IO[bytes], env: Mapping[str, str], **_: Any
    ) -> None:
        words = command[1:]  # without the interpreter
        # Without its study's end of a pipe, a job does not look for it.
        environment = {key: value for key, value in env.items() if key != LIFELINE}
        with _ASKING:
            self._process = warm.start(*words, env=environment)
        self.stdin = Path(os.devnull).open("wb")  # noqa: SIM115 - closed by the attempt
        self._log = os.dup(stdout.fileno())

    def wait(self) -> int:
        while True:
            with _ASKING:
                code = self._process.poll()
            if code is not None:
                break
            time.sleep(0.01)
        if self._log >= 0:
            out, err = self._process.communicate()
            os.write(self._log, (out + err).encode())
            os.close(self._log)
            self._log = -1
        return code


# Instead of the module `subprocess`, where jobs are started.
WARM = SimpleNamespace(Popen=WarmJob, PIPE=subprocess.PIPE, STDOUT=subprocess.STDOUT)

"""A real `prnas watch`, and a run that grows under its eyes."""

import http.client
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from prnas.runs.record_lines import to_line
from prnas.runs.records import Record


class Watching:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        self.process, self._out = process, process.stdout
        self.first = self._out.readline()
        match = re.search(r"http://\S+:(\d+)/", self.first)
        assert match, self.first
        self.url, self.port = match[0], int(match[1])

    def line(self) -> str:
        return self._out.readline()


@contextmanager
def watching(*arguments: str) -> Iterator[Watching]:
    """`prnas watch` as a process of its own; killed at the end if it is still there."""
    command = [sys.executable, "-m", "prnas", "watch", *arguments]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    late = threading.Timer(120, process.kill)  # a line that never comes must not wait forever
    late.start()
    try:
        yield Watching(process)
    finally:
        late.cancel()
        process.kill()
        process.communicate()


def grow(folder: Path, records: Sequence[Record]) -> None:
    with (folder / "records.jsonl").open("a", encoding="utf-8") as file:
        file.write("".join(map(to_line, records)))


def ask(
    port: int, path: str = "/", method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(
        method, path, headers={name.replace("_", "-"): v for name, v in headers.items()}
    )
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), body


def handles() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def answers(port: int) -> bool:
    try:
        return ask(port)[0] == 200
    except OSError:  # all slots are taken
        return False


def wait_for(test: Callable[[], bool], deadline: float) -> None:
    while not test():
        assert time.monotonic() < deadline
        time.sleep(0.02)

"""A real `prnas watch`, and a run that grows under its eyes."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from prnas.reporting.records import Record, to_line


class Watching:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        self.process, self._out = process, process.stdout
        self.first = self._out.readline()
        found = re.search(r"http://\S+:(\d+)/", self.first)
        assert found, self.first
        self.url, self.port = found[0], int(found[1])

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

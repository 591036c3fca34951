"""Engines: what makes attempts at jobs, several at a time. They know nothing of studies.

An engine is trusted with nothing: whether a job is done is read from its folder.
"""

import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Protocol

from prnas.studies.attempt import Ended, Slot, Task, attempt


class Engine(Protocol):
    """The calls that a study makes to an engine, all from one thread."""

    @property
    def num_slots(self) -> int:
        """The number of jobs that can be under way at the same time; it may change."""
        ...

    def start(self, task: Task) -> Slot | None:
        """Begin an attempt at a job; return its slot, unless the engine chooses it later."""
        ...

    def wait(self, seconds: float) -> list[Ended]:
        """The attempts that have ended; after so many seconds, none."""
        ...

    def stop(self) -> None:
        """Ask all jobs to save and end. Each still ends by `wait`."""
        ...

    def close(self) -> None:
        """Return when no process of a job is left."""
        ...


class LocalEngine:
    """Jobs as processes on this machine, at most one in each slot."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self._free = list(reversed(slots))
        self.num_slots = len(slots)
        self._ended: SimpleQueue[tuple[Slot, Ended]] = SimpleQueue()
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._threads: dict[int, threading.Thread] = {}
        self._lock = threading.Lock()
        self._stopping = False

    def start(self, task: Task) -> Slot:
        slot = self._free.pop()
        thread = threading.Thread(target=self._run, args=(task, slot), name=task.job, daemon=True)
        self._threads[task.number] = thread
        thread.start()
        return slot

    def _run(self, task: Task, slot: Slot) -> None:
        def started(process: "subprocess.Popen[bytes]") -> None:
            with self._lock:
                self._processes[task.number] = process
                if self._stopping:
                    end_of_input(process)

        try:
            ended = attempt(task, slot, started)
        except BaseException as error:  # Whatever it is: the study must hear of the end.
            ended = Ended(task, 1, message=f"{type(error).__name__}: {error}")
        with self._lock:
            self._processes.pop(task.number, None)
        self._ended.put((slot, ended))

    def wait(self, seconds: float) -> list[Ended]:
        results: list[Ended] = []
        with suppress(Empty):
            while True:
                slot, ended = self._ended.get(timeout=0 if results else seconds)
                self._threads.pop(ended.task.number).join()
                self._free.append(slot)
                results.append(ended)
        return results

    def stop(self) -> None:
        with self._lock:
            self._stopping = True
            for process in self._processes.values():
                end_of_input(process)

    def close(self) -> None:
        self.stop()
        for thread in list(self._threads.values()):
            thread.join()


def end_of_input(process: "subprocess.Popen[bytes]") -> None:
    """Ask a job to save and end."""
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()

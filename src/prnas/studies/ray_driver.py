"""The process that speaks to Ray: `python -m prnas.studies.ray_driver`, a child of the study.

Ray takes over the process that starts it: its signals, its output, and its life when the cluster
is lost. Here it may. Lines of JSON come in by standard input and go out by standard output; at the
end of the input, all jobs are asked to save and end, then this process ends.
"""

import json
import os
import shutil
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from prnas.runs.signals import EXIT
from prnas.studies.ray_worker import RayWorker

_LOOK = 5.0  # Seconds after which the machines of a cluster are counted again.
STORE = 80 * 2**20  # Bytes for objects; Ray wants 75 MiB, and we hand it a few lines.
# Its processes speak to each other here, whatever becomes of the machine's network. (127.0.0.1 is
# replaced by the machine's own address, on Linux; elsewhere it is what Ray takes by itself.)
LOOPBACK = "127.0.0.2" if sys.platform == "linux" else "127.0.0.1"
_STOPPED = EXIT + 15
_LOST = -9


@dataclass
class _Attempt:
    actor: Any
    began: bool = False


class Driver:
    """Attempts that are under way, by the number of the job."""

    def __init__(self, ray: Any, settings: dict[str, Any], say: Callable[..., None]) -> None:
        self._ray, self._say, self._settings = ray, say, settings
        self._news: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._attempts: dict[int, _Attempt] = {}
        self._nodes: list[dict[str, float]] = []
        self._stopping = self._over = False
        # Ray repeats nothing by itself: the study decides what is tried again.
        self._worker = ray.remote(max_restarts=0, max_task_retries=0, max_concurrency=4)(RayWorker)

    def serve(self, lines: Any) -> None:
        self._count_nodes()
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()
        while not self._over or self._attempts:
            try:
                self._news.get(timeout=_LOOK)()
            except Empty:
                self._count_nodes()

    def _read(self, lines: Any) -> None:
        for line in lines:
            message = json.loads(line)
            act = self._start if "task" in message else self._stop
            self._news.put(partial(act, message))
        self._news.put(self._end)

    def _end(self) -> None:
        self._over = True
        self._stop({})

    def _count_nodes(self) -> None:
        nodes: list[dict[str, float]] = []
        for node in self._ray.nodes():
            if node["Alive"]:
                has = node["Resources"]
                sizes = {"cpus": has.get("CPU", 0.0), "gpus": has.get("GPU", 0.0)}
                nodes.append({**sizes, "memory": has.get("memory", 0.0) / 1e9})
        if nodes != self._nodes:
            self._nodes = nodes
            self._say(nodes=nodes)

    def _start(self, message: dict[str, Any]) -> None:
        number = message["task"]["number"]
        actor = self._worker.options(**message["needs"]).remote()
        attempt = self._attempts[number] = _Attempt(actor)
        arguments = (message["task"], message["environment"], self._settings["cwd"])
        self._later(actor.here.remote(), partial(self._begun, attempt))
        self._later(actor.run.remote(*arguments), partial(self._ended, number))
        if self._stopping:
            self._stop_attempt(attempt)

    def _later(self, result: Any, act: Callable[[Any], None]) -> None:
        """Act on a result of Ray's when it is there, in the thread of all other news."""

        def put(future: Any) -> None:
            self._news.put(partial(act, future))

        result.future().add_done_callback(put)

    def _begun(self, attempt: _Attempt, future: Any) -> None:
        attempt.began = future.exception() is None

    def _ended(self, number: int, future: Any) -> None:
        attempt = self._attempts.pop(number)
        error = future.exception()
        if error is None:
            self._say(ended=[number, *future.result()])
        elif self._stopping and not attempt.began:
            self._say(ended=[number, _STOPPED, 0.0, 0, ""])
        else:
            lost = isinstance(error, self._ray.exceptions.RayActorError)
            self._say(ended=[number, _LOST if lost else 1, 0.0, None, _in_a_line(error)])

    def _stop(self, message: dict[str, Any]) -> None:
        self._stopping = True
        for attempt in self._attempts.values():
            self._stop_attempt(attempt)

    def _stop_attempt(self, attempt: _Attempt) -> None:
        if attempt.began:
            attempt.actor.stop.remote()
        else:  # It waits for room, maybe for ever. A job that did begin just now ends by itself.
            self._ray.kill(attempt.actor)


def _in_a_line(error: BaseException) -> str:
    """The last line of Ray's message, which may hold a traceback, without its guesses."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[-1].partition(" Some common causes")[0] if lines else type(error).__name__
    return f"its Ray worker was lost: {text[:300]}"


def _connect(ray: Any, settings: dict[str, Any]) -> None:
    options = {"log_to_driver": False, "logging_level": "ERROR"}
    if settings["address"] is not None:
        ray.init(address=settings["address"], **options)
        return
    ray.init(
        address="local",
        num_cpus=settings["cpus"],
        num_gpus=settings["gpus"],
        object_store_memory=STORE,
        include_dashboard=False,
        _node_ip_address=LOOPBACK,
        **options,
    )


def main() -> None:
    messages = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # Whatever Ray prints goes to the log.

    def say(**message: Any) -> None:
        with suppress(OSError):  # The study is gone, and its jobs are being stopped.
            print(json.dumps(message), file=messages, flush=True)

    settings = json.loads(sys.stdin.readline())
    try:
        import ray

        _connect(ray, settings)
    except BaseException as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        say(problem=lines[0] if lines else type(error).__name__)
        sys.exit(1)
    own: Any = ray
    Driver(own, settings, say).serve(sys.stdin)
    own.shutdown()
    shutil.rmtree(settings["folder"], ignore_errors=True)  # The study may have been killed.


if __name__ == "__main__":
    main()

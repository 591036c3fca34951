"""Processes that read images. They end with the process that started them, however it ends."""

import multiprocessing
import os
import signal
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait

from prnas.data.readers import Pixels, Places, Rows
from prnas.io.errors import UserError

_rows: Rows | None = None  # of a worker process, given once and not with every task


class Workers:
    """Worker processes for one set of images; they start with the first task."""

    def __init__(self, rows: Rows, number: int) -> None:
        self.number = number
        # `spawn`: a copy of a process that runs PyTorch's threads could hang.
        self._pool = ProcessPoolExecutor(
            number, multiprocessing.get_context("spawn"), initializer=_begin, initargs=(rows,)
        )

    def read(self, places: Places) -> Future[Pixels]:
        try:
            return self._pool.submit(_read, places)
        except BrokenProcessPool:
            raise _died() from None

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


def result(task: "Future[Pixels]") -> Pixels:
    try:
        return task.result()
    except BrokenProcessPool:
        raise _died() from None


def _died() -> UserError:
    return UserError(
        "a process that reads images has ended unexpectedly, perhaps for lack of memory. Set "
        "data.workers=0 to read in the main process. (A script of your own must do its work "
        "under `if __name__ == '__main__':`, since worker processes import it.)"
    )


def _begin(rows: Rows) -> None:
    global _rows
    _rows = rows
    # Sent to all processes of a job, these are for the parent: it may still need images to stop.
    for name in ("SIGINT", "SIGTERM", "SIGUSR1"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()


def _follow(sentinel: int) -> None:
    """A parent that is killed closes nothing: notice it, and do not stay behind."""
    wait([sentinel])
    os._exit(1)


def _read(places: Places) -> Pixels:
    assert _rows is not None
    return _rows.read(places)

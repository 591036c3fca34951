"""Worker processes that read images. They end with their parent, however it ends."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Generator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait

from prnas.data.readers import ImageReader, Indices, Pixels
from prnas.io.errors import UserError

_reader: ImageReader | None = None  # A worker's reader, sent once and not with every task.


class Workers:
    """Worker processes for one set of images; they start with the first task."""

    def __init__(self, reader: ImageReader, number: int) -> None:
        self.number = number
        # `spawn`: a copy of a process that runs PyTorch's threads could hang.
        self._pool = ProcessPoolExecutor(
            number, multiprocessing.get_context("spawn"), initializer=_begin, initargs=(reader,)
        )

    def read(self, indices: Indices) -> Future[Pixels]:
        with _explained():
            return self._pool.submit(_read, indices)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


def result(task: "Future[Pixels]") -> Pixels:
    with _explained():
        return task.result()


@contextmanager
def _explained() -> Generator[None]:
    try:
        yield
    except BrokenProcessPool:
        raise UserError(
            "a process that reads images has ended unexpectedly, perhaps for lack of memory. Set "
            "data.workers=0 to read in the main process. (A script of your own must do its work "
            "under `if __name__ == '__main__':`, since worker processes import it.)"
        ) from None


def _begin(reader: ImageReader) -> None:
    global _reader
    _reader = reader
    end_with_parent()


def end_with_parent() -> None:
    """Leave signals to the parent, which needs its workers until it stops; then end with it."""
    for name in ("SIGINT", "SIGTERM", "SIGUSR1"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()


def _follow(sentinel: int) -> None:
    """End with the parent, also if it is killed and cannot close the workers."""
    wait([sentinel])
    os._exit(1)


def _read(indices: Indices) -> Pixels:
    assert _reader is not None
    return _reader.read(indices)

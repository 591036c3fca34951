"""One process at a time for a job: a lock that the job's own process holds, and its parent.

Where the system has `flock`, the lock is an open file that the job inherits. So it lasts until the
last of both has ended, however they end: a job that outlives its parent for a moment, while it
saves, is not started a second time beside it.
"""

import os
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

try:
    import fcntl
except ImportError:  # Windows: there, only the parent holds the lock.
    fcntl = None


def lock_file(study: Path, job: str) -> Path:
    """The lock of a job, given by its run's path in the study's folder."""
    run = study / job
    return run.with_name(f".{run.name}.lock")


class JobLock:
    """A job's lock, held until `release`. `handle`: what a child process must inherit."""

    def __init__(self, path: Path) -> None:
        """A `Timeout` if someone else has it."""
        self.handle: int | None = None
        self._lock: FileLock | None = None
        if fcntl is None:
            self._lock = FileLock(path)
            self._lock.acquire(timeout=0)
            return
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise Timeout(str(path)) from None
        except BaseException:
            os.close(handle)
            raise
        self.handle = handle

    def release(self) -> None:
        if self._lock is not None:
            self._lock.release()
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None


def is_locked(path: Path) -> bool:
    """Whether someone has a lock at this moment; a lock file that is absent is nobody's."""
    if not path.exists():
        return False
    try:
        JobLock(path).release()
    except Timeout:
        return True
    except OSError:
        return False
    return False


def is_run_locked(lock: Path) -> bool:
    """Whether a process is running in a run's folder, by the run's own lock."""
    if not lock.exists():
        return False
    own = FileLock(lock)
    try:
        own.acquire(timeout=0)
    except (Timeout, OSError):
        return True
    with suppress(OSError):
        own.release()
    return False

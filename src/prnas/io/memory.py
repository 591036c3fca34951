"""Main memory: the free amount, errors that mean it ran out, returning it to the system."""

import ctypes
import gc
from contextlib import suppress
from pathlib import Path

import psutil

OUT_OF_MEMORY_TEXTS = (
    *("can't allocate memory", "not enough memory", "out of memory"),
    *("cudnn_status_alloc_failed", "cublas_status_alloc_failed"),
    # Messages of the C library, of C++, and of oneDNN, which does not say why it failed.
    *("cannot allocate memory", "bad_alloc", "could not create a primitive"),
    *("could not execute a primitive", "could not create a memory object"),
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out, on a GPU or on the CPU."""
    import torch  # Heavy: the rest of this file is light.

    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(phrase in text for phrase in OUT_OF_MEMORY_TEXTS)


def free_memory(num_processes: int = 1, limit: float | None = None) -> float:
    """Bytes of main memory that each of `num_processes` may still take.

    `limit` is that of each process; a control group's limit is for all of them.
    """
    used = psutil.Process().memory_info().rss
    groups = [group - num_processes * used for group in cgroup_limits()]
    free = min([psutil.virtual_memory().available, *groups]) / num_processes
    return max(0.0, free if limit is None else min(free, limit - used))


def give_back_memory() -> None:
    """Let the C library return freed memory to the system, where it can."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def recover_memory() -> None:
    """Free memory after it ran out: collect garbage, and return it to the system."""
    gc.collect()
    give_back_memory()


def check_room(num_bytes: int) -> None:
    """Raise a `MemoryError` if so many bytes are not free; other libraries would abort."""
    try:
        bytearray(num_bytes)
    except MemoryError:
        recover_memory()
        bytearray(num_bytes)


def cgroup_limits(root: Path = Path("/sys/fs/cgroup")) -> list[float]:
    """The memory limits of the control groups that hold this process, versions 2 and 1."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    limits: list[float] = []
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            base, name = root, "memory.max"
        elif "memory" in controllers.split(","):
            base, name = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        inner = base / group.lstrip("/")
        # The limits of all enclosing groups apply as well.
        for folder in [inner, *inner.parents]:
            if not folder.is_relative_to(base):
                break
            try:
                limits.append(float((folder / name).read_text()))
            except (OSError, ValueError):  # Absent, or "max".
                continue
    return [limit for limit in limits if 0 < limit < 2**60]

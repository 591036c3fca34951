"""The number of threads of a run: by rule, so that a small run has the same bits on more cores."""

import psutil
import torch

# Multiply-accumulates of a step's forward pass, all its images together, that are worth a thread.
# Below, a second thread gains little on a quiet machine, and costs much on a busy one, where all
# threads of a step wait for the slowest (`python -m benchmarks.threads`).
MACS_PER_THREAD = 150e6
_WATCHED = 0.2  # seconds
CORES = torch.get_num_threads()  # before any run changes it


def default_threads(step_macs: float, cores: int = CORES) -> int:
    """The number of threads that the work is worth, as far as there are cores."""
    return max(1, min(cores, int(step_macs / MACS_PER_THREAD)))


def busy_warning(threads: int) -> str | None:
    """A warning if other programs keep the cores busy that a run's threads want."""
    if threads == 1:
        return None
    busy = psutil.cpu_percent(_WATCHED) / 100 * (psutil.cpu_count() or 1)  # this process only waits
    if busy + threads < CORES + 0.5:
        return None
    return (
        f"other programs keep {busy:.1f} of {psutil.cpu_count()} cores busy, and a run of "
        f"{threads} threads is as slow as its slowest: --threads 1 may be faster"
    )

"""How long a run will still take, from the relative cost of its epochs and measured times."""

from collections.abc import Sequence

RECENT = 0.75  # an epoch counts this much of the one after it


def seconds_left(work_done: Sequence[tuple[float, float]], work_left: float) -> float | None:
    """Seconds for `work_left`, from (work, seconds) of what is done, the latest last.

    The later an epoch, the more it counts. `None`: nothing is done yet that could tell.
    """
    if work_left <= 0:
        return 0.0
    work = seconds = 0.0
    for done, took in work_done:
        work = RECENT * work + max(done, 0.0)
        seconds = RECENT * seconds + max(took, 0.0)
    return work_left * seconds / work if work > 0 else None

"""The estimated time until a run ends, from the speed of its finished work."""

from collections.abc import Sequence

_RECENT = 0.75  # weight of an epoch's speed in estimates, relative to the epoch after it


def speed_of(
    work: float, share: float, seconds: float, first: tuple[float, float]
) -> tuple[float, float]:
    """Work and seconds of an epoch, of which a share is done, without its `first` step.

    A session's first step (its share, its seconds) takes much longer than any other. Where it is
    all there is, it has to do.
    """
    if share > first[0]:
        share, seconds = share - first[0], seconds - first[1]
    return work * share, max(seconds, 1e-9)


def seconds_left(work_done: Sequence[tuple[float, float]], work_left: float) -> float | None:
    """Seconds for `work_left`, from (work, seconds) of what is done, the latest last.

    The later an epoch, the more it counts. `None`: nothing is done yet that could tell.
    """
    if work_left <= 0:
        return 0.0
    work = seconds = 0.0
    for done, took in work_done:
        work = _RECENT * work + max(done, 0.0)
        seconds = _RECENT * seconds + max(took, 0.0)
    return work_left * seconds / work if work > 0 else None

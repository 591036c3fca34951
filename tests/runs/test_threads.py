"""How many threads a run takes, and what it says on a busy machine."""

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.runs import threads as threads_module
from prnas.runs.threads import MACS_PER_THREAD, busy_warning, default_threads


@given(st.floats(0, 1e15), st.integers(1, 256))
def test_threads_grow_with_the_work_as_far_as_there_are_cores(macs: float, cores: int) -> None:
    threads = default_threads(macs, cores)
    assert 1 <= threads <= cores
    assert threads <= default_threads(2 * macs, cores)
    assert threads == min(default_threads(macs, 1000), cores)  # the work alone decides
    if threads > 1:
        assert macs >= threads * MACS_PER_THREAD


@pytest.mark.parametrize(("macs", "threads"), [(0.064e9, 1), (0.134e9, 1), (0.385e9, 2), (4e9, 8)])
def test_recipes_that_were_measured(macs: float, threads: int) -> None:
    """The embedded digits, a supernet of 8 channels on 16 x 16 pixels, cifar10-small, the paper."""
    assert default_threads(macs, 8) == threads


@pytest.mark.parametrize(
    ("threads", "percent", "warns"),
    [(1, 100.0, False), (2, 50.0, True), (2, 10.0, False), (2, 100.0, True)],
)
def test_a_busy_machine_is_said_to_be_so(
    monkeypatch: pytest.MonkeyPatch, threads: int, percent: float, warns: bool
) -> None:
    monkeypatch.setattr(psutil, "cpu_percent", lambda _: percent)
    monkeypatch.setattr(psutil, "cpu_count", lambda: 2)
    monkeypatch.setattr(threads_module, "CORES", 2)
    warning = busy_warning(threads)
    assert (warning is not None) == warns
    if warning:
        assert "--threads 1" in warning

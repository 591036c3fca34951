"""How many threads a run takes, and what it says on a busy machine."""

from pathlib import Path

import psutil
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from prnas.config.search import SearchConfig
from prnas.runs import session
from prnas.runs import threads as threads_module
from prnas.runs.folder import read_config
from prnas.runs.threads import MACS_PER_THREAD, busy_warning, default_threads
from prnas.searching.api import start
from tests.support.settings import small_config
from tests.support.watching import Watch, folder_of


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


@pytest.mark.parametrize("threads", [None, 1])
def test_a_run_follows_the_rule_and_says_at_its_start_that_the_machine_is_busy(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int | None
) -> None:
    """The rule would take two threads for a step of this search, if it were larger."""
    seen: list[float] = []

    def rule(step_macs: float) -> int:
        seen.append(step_macs)
        return 2

    monkeypatch.setattr(session, "default_threads", rule)
    monkeypatch.setattr(psutil, "cpu_percent", lambda _: 100.0)
    monkeypatch.setattr(psutil, "cpu_count", lambda: 2)
    monkeypatch.setattr(threads_module, "CORES", 2)
    watch = Watch()
    config = small_config(images, compute={"threads": threads})
    before = torch.get_num_threads()
    try:
        folder = folder_of(start(config, runs=tmp_path, callbacks=[watch]))
    finally:
        torch.set_num_threads(before)
    said = [text for text in watch.messages if "--threads 1" in text]
    assert len(said) == (1 if threads is None else 0)
    assert len(seen) == (1 if threads is None else 0)  # an explicit number overrides the rule
    saved = read_config(folder, SearchConfig, ())
    assert saved.compute.threads == (threads or 2)
    if seen:  # the batch's greatest size times the forward pass of an image
        assert seen[0] % config.batch.max == 0

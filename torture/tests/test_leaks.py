"""Memory, file handles, threads and processes stay as many: longer ones in torture/memory.py."""

import gc
import os
import signal
from pathlib import Path

import psutil
import pytest
import torch

from prnas.config.search import DataConfig
from prnas.data.dataset import load
from tests.support.made_data import picture_folder
from torture.memory import Usage, long_search, long_training, many_searches

pytestmark = pytest.mark.skipif(os.name != "posix", reason="file handles")
GROWTH = 0.05  # of the resident set, from the middle third of the steps to the last


def check(usage: Usage) -> None:
    assert usage.growth() < GROWTH, usage.text()
    assert usage.constant(), usage.text()


def test_many_steps_and_replacements(images: Path, tmp_path: Path) -> None:
    usage = long_search(f"npz:{images}", 4, tmp_path)
    assert len(usage.memory) >= 40
    check(usage)


@pytest.mark.slow  # the same loop as a search's
def test_many_steps_of_a_training(images: Path, tmp_path: Path) -> None:
    check(long_training(f"npz:{images}", 4, tmp_path))


@pytest.mark.slow
def test_searches_one_after_the_other_in_one_process(images: Path) -> None:
    gc.collect()
    check(many_searches(f"npz:{images}", 6))


@pytest.mark.slow
def test_streamed_searches_leave_no_processes_behind(tmp_path: Path) -> None:
    pictures = f"folder:{picture_folder(tmp_path / 'pictures', per_class=12)}"
    usage = many_searches(pictures, 6, storage="stream", workers=2, image_size=8)
    check(usage)
    assert max(usage.children) <= 1  # Python's own, which watches over shared memory


def test_signals_to_the_whole_job_do_not_end_those_that_read_images(tmp_path: Path) -> None:
    """A scheduler asks all processes to stop; the run must still read, to stop after its step."""
    pictures = f"folder:{picture_folder(tmp_path / 'pictures', per_class=4)}"
    config = DataConfig(name=pictures, storage="stream", workers=1, image_size=8)
    data = load(config, torch.device("cpu"), lambda _: None)
    others = {process.pid for process in psutil.Process().children()}
    try:
        first = data.train.fetch(torch.arange(2))
        workers = [process for process in psutil.Process().children() if process.pid not in others]
        assert workers
        for worker in workers:
            if "resource_tracker" not in " ".join(worker.cmdline()):
                worker.send_signal(signal.SIGTERM)
                worker.send_signal(signal.SIGUSR1)
        assert torch.equal(data.train.fetch(torch.arange(2)), first)
        assert torch.equal(data.train.fetch(torch.tensor([1, 0])), first[[1, 0]])
    finally:
        data.close()

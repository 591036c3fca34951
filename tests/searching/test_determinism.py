"""The same seed, the same result: again, after other work, and with another number of threads."""

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from prnas.retraining import api as retrain
from prnas.searching.api import start
from tests.support.settings import small_config, small_training
from tests.support.watching import assert_same_run, folder_of


@pytest.fixture
def threads() -> Iterator[None]:
    """A run may set the number of PyTorch's threads; afterwards it is as before."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_other_work_with_the_global_generators_changes_nothing(
    images: Path, tmp_path: Path, reference: Path
) -> None:
    random.seed(3)
    np.random.seed(3)
    torch.manual_seed(3)
    torch.rand(3)
    found = start(small_config(images), runs=tmp_path)
    assert_same_run(folder_of(found), reference)


def test_a_training_is_the_same_after_other_work(images: Path, tmp_path: Path) -> None:
    runs: list[Path] = []
    for seed in (3, 4):
        torch.manual_seed(seed)
        runs.append(folder_of(retrain.start(small_training(images), runs=tmp_path)))
    assert_same_run(*runs)


def test_a_run_leaves_the_global_generators_alone(images: Path) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    start(small_config(images), runs=None)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.usefixtures("threads")
def test_another_number_of_threads_repeats_itself_and_differs_by_rounding_only(
    images: Path, tmp_path: Path
) -> None:
    """Batch normalisation and gradients of convolutions sum up by threads: last bits may differ."""
    cycle = {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1}
    losses: list[float] = []
    for threads in (1, 2):
        config = small_config(
            images,
            compute={"accelerator": "cpu", "threads": threads},
            schedule={"cycles": [cycle]},
        )
        one, other = (start(config, runs=tmp_path) for _ in range(2))
        assert_same_run(folder_of(one), folder_of(other))
        losses.append(one.epochs[0].scores["weights"].loss)
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)

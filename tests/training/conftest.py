"""One thread a test process: pytest-xdist runs as many processes as there are cores."""

from pathlib import Path

import pytest
import torch

from prnas.training.search import start
from tests.training.settings import small_config, write_images
from tests.training.watching import folder_of

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_images(tmp_path_factory.mktemp("data") / "images.npz")


@pytest.fixture(scope="session")
def reference(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was never stopped."""
    return folder_of(start(small_config(images), runs=tmp_path_factory.mktemp("reference")))

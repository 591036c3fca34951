"""What tests of every folder share: Hypothesis's profile, one thread a process, and fixtures."""

import torch
from hypothesis import settings

from tests.support.fixtures import here, images, pooling_grows, reference

__all__ = ["here", "images", "pooling_grows", "reference"]

# The same examples on every run, and no deadline on machines under load.
settings.register_profile("prnas", deadline=None, derandomize=True)
settings.load_profile("prnas")

# pytest-xdist runs as many processes as there are cores.
torch.set_num_threads(1)

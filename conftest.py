"""What tests of every folder share: Hypothesis's profile, one thread a process, and fixtures."""

import gc
import os

# Two processes at work, and what they start: threads that wait must not take the processors. Set
# before PyTorch is loaded, which reads it.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Some virtual machines announce AMX and end a process that uses it ("Illegal instruction"), which
# PyTorch does in bfloat16. This is the next best; other precisions have nothing to do with it.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import pytest
import torch
from hypothesis import settings

from tests.support.fixtures import here, images, own_operations, pooling_grows, reference

__all__ = ["here", "images", "own_operations", "pooling_grows", "reference"]

# The same examples on every run, and no deadline on machines under load.
settings.register_profile("prnas", deadline=None, derandomize=True)
settings.load_profile("prnas")

# pytest-xdist runs as many processes as there are cores.
torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="module")
def short_collections() -> None:
    """What earlier modules loaded stays: collecting garbage need not look at it again.

    Searches collect garbage when memory runs out. With PyTorch, ONNX and Ray loaded, a look at
    everything takes as long as a whole test.
    """
    gc.collect()
    gc.freeze()

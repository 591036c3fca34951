"""What tests of every folder share: Hypothesis's profile, one thread a process, and fixtures."""

import gc
import os
import shutil
from pathlib import Path

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

# Runs sync every file that they write. Where temporary files may be in memory, that is quick; no
# other disk is needed for it. `PYTEST_DEBUG_TEMPROOT=DIR` or `--basetemp DIR` has them elsewhere.
IN_MEMORY, ROOM = Path("/dev/shm"), 4e9  # noqa: S108 - pytest makes a private folder there
if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))

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

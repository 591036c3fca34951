"""The curvature of a search's loss after an epoch: how sharply it depends on the architecture."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from prnas.data.augment import plain
from prnas.io.memory import is_out_of_memory, recover_memory
from prnas.nets.curvature import curvature
from prnas.runs import faults
from prnas.runs.preparation import torch_generator

if TYPE_CHECKING:
    from prnas.searching.search import Search


def measured_curvature(search: "Search") -> float | None:
    """Measured where it is due: every so many epochs, in which the architecture was trained.

    Always on the same images of the architecture half, as many as the smallest batch has. All
    processes compute it, and take what the first has found.
    """
    every, position = search.config.evidence.curvature, search.state.position
    if not every or search.grace or (position.epoch + 1) % every:
        return None
    half = search.indices["architecture"]
    generator = torch_generator(search.config.seed, "curvature")
    order = half[torch.randperm(len(half), generator=generator)]
    search.state.supernet.progress = search.progress
    size = min(search.config.batch.min, len(order))
    while (found := _attempt(search, order[:size])) is None:
        if size <= 2:
            raise faults.out_of_memory(search)
        size = -(-size // 2)
    return search.processes.broadcast(found)


def _attempt(search: "Search", indices: Tensor) -> float | None:
    """`None` if memory runs out, in any process."""
    images, processes = search.data.train, search.processes
    generator = torch_generator(search.config.seed, "curvature", 1)
    found = 0.0
    failed = False
    try:
        pixels = plain(images.fetch(indices), search.normalization).to(processes.dtype)
        labels = images.labels[indices].to(pixels.device)
        with processes.autocast():
            found = curvature(search.state.supernet, pixels, labels, generator)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        failed = True
    (anywhere,) = processes.maximum([float(failed)])
    if anywhere:
        recover_memory()
        return None
    return found

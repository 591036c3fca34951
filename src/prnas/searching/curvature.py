"""The curvature of a search's loss after an epoch: how sharply it depends on the architecture.

And a search that ends when it has grown: Zela, Elsken, Saikia, Marrakchi, Brox, Hutter:
Understanding and Robustifying Differentiable Architecture Search. ICLR 2020.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from prnas.data.augment import plain
from prnas.io.memory import is_out_of_memory, recover_memory
from prnas.nets.curvature import curvature
from prnas.runs import faults
from prnas.runs.preparation import torch_generator
from prnas.space.pools import CellWeights
from prnas.space.shape import Role

if TYPE_CHECKING:
    from prnas.searching.search import Search

WINDOW = 5  # measurements whose mean is compared
BACK = 4  # with that of so many measurements before
FIRST_EPOCH = 10  # before which a search does not end


class CurvatureStop:
    """Ends a search of one cycle when its curvature has grown, with what it had found before."""

    def __init__(self, search: "Search", saved: Mapping[str, Any] | None) -> None:
        self.search = search
        # The value of each measurement, and the weights that were judged at it.
        self.values: list[float] = [float(value) for value in (saved or {}).get("values", [])]
        self.weights: list[dict[Role, CellWeights]] = list((saved or {}).get("weights", []))
        if len(self.values) != len(self.weights):
            raise ValueError("each curvature needs the architecture weights that it was of")

    @property
    def wanted(self) -> bool:
        return self.search.config.evidence.curvature_stop > 0

    def add(self, value: float | None, weights: dict[Role, CellWeights]) -> None:
        """Add the curvature after the present epoch, if it was measured, and the weights there."""
        if self.wanted and value is not None:
            self.values.append(value)
            self.weights.append(weights)

    @property
    def stopped(self) -> bool:
        """Whether the search is to end now."""
        limit, epoch = self.search.config.evidence.curvature_stop, self.search.state.position.epoch
        return self.wanted and epoch >= FIRST_EPOCH and has_grown(self.values, limit)

    @property
    def before(self) -> dict[Role, CellWeights] | None:
        """The architecture weights from before it grew."""
        return self.weights[-1 - BACK] if self.stopped else None

    def state(self) -> dict[str, Any]:
        """Plain data for a checkpoint."""
        if not self.values:
            return {}
        return {"curvature": {"values": self.values, "weights": self.weights}}


def has_grown(values: Sequence[float], limit: float) -> bool:
    """Whether the mean of the last measurements is more than `limit` times that of earlier ones."""
    if len(values) <= BACK:
        return False
    now, before = (fmean(series[-WINDOW:]) for series in (values, values[:-BACK]))
    return before > 0 and now > limit * before


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
    while (value := _attempt(search, order[:size])) is None:
        if size <= 2:
            raise faults.out_of_memory(search)
        size = -(-size // 2)
    return search.processes.broadcast(value)


def _attempt(search: "Search", indices: Tensor) -> float | None:
    """`None` if memory runs out, in any process."""
    images, processes = search.data.train, search.processes
    generator = torch_generator(search.config.seed, "curvature", 1)
    value = 0.0
    failed = False
    try:
        pixels = plain(images.fetch(indices), search.normalization).to(processes.dtype)
        labels = images.labels[indices].to(pixels.device)
        with processes.autocast():
            value = curvature(search.state.supernet, pixels, labels, generator)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        failed = True
    (anywhere,) = processes.maximum([float(failed)])
    if anywhere:
        recover_memory()
        return None
    return value

"""Where a set's images are while a search runs: on the device, or read as they are needed."""

from collections.abc import Iterable
from concurrent.futures import Future
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from prnas.data.readers import ArrayRows, Part, Pixels, Rows
from prnas.data.workers import Workers, result

_CHUNK_BYTES = 2**26  # read at once on the way to the device
_TASK = 32  # images that a worker reads at a time


class Images(Protocol):
    """A set of images, in memory or streamed."""

    labels: Tensor  # int64, on the CPU
    shape: tuple[int, int, int]  # channels, height, width

    def __len__(self) -> int: ...
    def fetch(self, places: Tensor) -> Tensor:
        """Images, uint8 (n, C, H, W) on the device, by their places (int64, on the CPU)."""
        ...

    def ahead(self, places: Tensor) -> None:
        """A hint: these will be fetched soon, in this order."""
        ...

    def close(self) -> None: ...


class InMemory:
    """Images on the device."""

    def __init__(self, pixels: Tensor, labels: Tensor) -> None:
        self.pixels = pixels
        self.labels = labels
        channels, height, width = pixels.shape[1:]
        self.shape = (channels, height, width)

    def __len__(self) -> int:
        return len(self.labels)

    def fetch(self, places: Tensor) -> Tensor:
        return self.pixels.index_select(0, places.to(self.pixels.device))

    def ahead(self, places: Tensor) -> None:
        pass

    def close(self) -> None:
        pass


class Streamed:
    """Images that are read as they are needed, by worker processes if there are any.

    What comes back depends on the places alone, never on the workers or on the hints.
    """

    def __init__(self, rows: Rows, labels: Tensor, workers: int, device: torch.device) -> None:
        self.labels = labels
        self.shape = rows.shape
        self._rows = rows
        self._device = device
        self._workers = Workers(rows, workers) if workers and not rows.resident else None
        # For each image on its way: the task that reads it, and its row there. Oldest first.
        self._coming: dict[int, tuple[Future[Pixels], int]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def fetch(self, places: Tensor) -> Tensor:
        if self._workers is None:
            pixels = self._rows.read(places.numpy())
        else:
            pixels = self._collect(self._workers, places.tolist())
        return torch.from_numpy(np.ascontiguousarray(pixels)).to(self._device)

    def ahead(self, places: Tensor) -> None:
        if self._workers is None or not len(places):
            return
        self._order(self._workers, places.tolist())
        # Two streams share a set, each with its own hints; what nobody came for is let go.
        for place in list(self._coming)[: -4 * max(len(places), _TASK)]:
            del self._coming[place]

    def close(self) -> None:
        self._coming.clear()
        if self._workers is not None:
            self._workers.close()

    def _order(self, workers: Workers, places: Iterable[int]) -> None:
        missing = [place for place in dict.fromkeys(places) if place not in self._coming]
        size = max(1, min(_TASK, -(-len(missing) // workers.number)))
        for start in range(0, len(missing), size):
            some = missing[start : start + size]
            task = workers.read(np.array(some, np.int64))
            self._coming.update((place, (task, row)) for row, place in enumerate(some))

    def _collect(self, workers: Workers, places: list[int]) -> Pixels:
        self._order(workers, places)
        tasks = [self._coming[place] for place in places]
        for place in set(places):
            del self._coming[place]
        pixels = np.empty((len(places), *self.shape), np.uint8)
        for number, (task, row) in enumerate(tasks):
            pixels[number] = result(task)[row]
        return pixels


def fits(num_bytes: int, device: torch.device, free: float) -> bool:
    """Whether a set may stay in memory, of which `free` is left, with room for the run."""
    if device.type == "cuda":
        return num_bytes <= _free_cuda(device) // 3
    return num_bytes <= free / 2


def _free_cuda(device: torch.device) -> int:
    return torch.cuda.mem_get_info(device)[0]


def in_memory(part: Part, device: torch.device) -> InMemory:
    """All images of a part, brought to the device."""
    rows, number = part.rows, len(part.rows)
    if isinstance(rows, ArrayRows) and device.type == "cpu" and rows.array.flags.writeable:
        return InMemory(torch.from_numpy(rows.array), torch.from_numpy(part.labels))
    pixels = torch.empty((number, *rows.shape), dtype=torch.uint8, device=device)
    step = max(1, _CHUNK_BYTES // int(np.prod(rows.shape)))
    for start in range(0, number, step):
        places = np.arange(start, min(start + step, number), dtype=np.int64)
        pixels[start : start + step] = torch.from_numpy(np.ascontiguousarray(rows.read(places)))
    return InMemory(pixels, torch.from_numpy(part.labels))


def streamed(part: Part, workers: int, device: torch.device) -> Streamed:
    return Streamed(part.rows, torch.from_numpy(part.labels), workers, device)

"""Storage of a set's images: in the device's memory, or read as they are needed."""

from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from itertools import zip_longest

import numpy as np
import torch
from torch import Tensor

from prnas.data.readers import ArrayReader, LabelledImages, Pixels, Shape
from prnas.data.workers import Workers, result
from prnas.nets.devices import to_device

_CHUNK_BYTES = 2**26  # Bytes that are read at once on the way to the device.
_TASK = 32  # Number of images that a worker reads at a time.


class Images:
    """A set of images, in memory or streamed."""

    def __init__(self, labels: Tensor, shape: Shape) -> None:
        self.labels = labels  # Classes, int64, on the CPU.
        self.shape = shape

    def __len__(self) -> int:
        return len(self.labels)

    def fetch(self, indices: Tensor) -> Tensor:
        """Images, uint8 (n, C, H, W) on the device, by their indices (int64, on the CPU)."""
        raise NotImplementedError

    def ahead(self, indices: Tensor) -> None:
        """A hint that these images will be fetched soon, in this order."""

    def close(self) -> None:
        """End what reads the images."""

    def batches(self, indices: Tensor, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """The images at `indices` in batches: the indices and the pixels of each."""
        batches = indices.split(size)
        for batch, following in zip_longest(batches, batches[1:]):
            pixels = self.fetch(batch)
            if following is not None:
                self.ahead(following)
            yield batch, pixels


class InMemory(Images):
    """Images on the device."""

    def __init__(self, pixels: Tensor, labels: Tensor) -> None:
        channels, height, width = pixels.shape[1:]
        super().__init__(labels, (channels, height, width))
        self.pixels = pixels

    def fetch(self, indices: Tensor) -> Tensor:
        return self.pixels.index_select(0, to_device(indices, self.pixels.device))


class Streamed(Images):
    """Images that are read as they are needed, by worker processes if there are any.

    The images depend on the indices alone, never on the workers or on the hints.
    """

    def __init__(self, split: LabelledImages, workers: int, device: torch.device) -> None:
        super().__init__(torch.from_numpy(split.labels), split.reader.shape)
        self._reader, self._device = split.reader, device
        use_workers = workers and not split.reader.resident
        self._workers = Workers(split.reader, workers) if use_workers else None
        # For each image that is being read: its task, and its row in the result. Oldest first.
        self._pending: dict[int, tuple[Future[Pixels], int]] = {}

    def fetch(self, indices: Tensor) -> Tensor:
        if self._workers is None:
            pixels = self._reader.read(indices.numpy())
        else:
            pixels = self._collect(self._workers, indices.tolist())
        return to_device(torch.from_numpy(np.ascontiguousarray(pixels)), self._device)

    def ahead(self, indices: Tensor) -> None:
        if self._workers is None or not len(indices):
            return
        self._submit(self._workers, indices.tolist())
        # Two streams share a set, each with its own hints; images that were not fetched expire.
        for index in list(self._pending)[: -4 * max(len(indices), _TASK)]:
            del self._pending[index]

    def close(self) -> None:
        self._pending.clear()
        if self._workers is not None:
            self._workers.close()

    def _submit(self, workers: Workers, indices: Iterable[int]) -> None:
        missing = [index for index in dict.fromkeys(indices) if index not in self._pending]
        size = max(1, min(_TASK, -(-len(missing) // workers.number)))
        for start in range(0, len(missing), size):
            chunk = missing[start : start + size]
            task = workers.read(np.array(chunk, np.int64))
            self._pending.update((index, (task, row)) for row, index in enumerate(chunk))

    def _collect(self, workers: Workers, indices: list[int]) -> Pixels:
        self._submit(workers, indices)
        tasks = [self._pending[index] for index in indices]
        for index in set(indices):
            del self._pending[index]
        pixels = np.empty((len(indices), *self.shape), np.uint8)
        for number, (task, row) in enumerate(tasks):
            pixels[number] = result(task)[row]
        return pixels


def fits(num_bytes: int, device: torch.device, free: float) -> bool:
    """Whether a set fits into memory, of which `free` bytes are left, with room for the run."""
    if device.type == "cuda":
        return num_bytes <= torch.cuda.mem_get_info(device)[0] // 3
    return num_bytes <= free / 2


def in_memory(split: LabelledImages, device: torch.device) -> InMemory:
    """The images in the memory of the device."""
    reader, number = split.reader, len(split.reader)
    if isinstance(reader, ArrayReader) and device.type == "cpu" and reader.array.flags.writeable:
        return InMemory(torch.from_numpy(reader.array), torch.from_numpy(split.labels))
    pixels = torch.empty((number, *reader.shape), dtype=torch.uint8, device=device)
    step = max(1, _CHUNK_BYTES // int(np.prod(reader.shape)))
    for start in range(0, number, step):
        indices = np.arange(start, min(start + step, number), dtype=np.int64)
        pixels[start : start + step] = torch.from_numpy(np.ascontiguousarray(reader.read(indices)))
    return InMemory(pixels, torch.from_numpy(split.labels))

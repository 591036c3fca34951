"""Endless shuffled streams of images, whose whole state is their position."""

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor

from prnas.data.dataset import Images
from prnas.io.errors import UserError
from prnas.nets.devices import to_device

_AHEAD = 2  # Number of batches that a streamed set reads in advance.


class Stream:
    """An endless shuffled stream over some indices of a set of images.

    Every pass takes each index once, in an order that follows from the seed and the number of the
    pass. It does not depend on the batch size, nor on the number of processes.
    """

    def __init__(
        self, images: Images, indices: Tensor, seed: int, rank: int = 0, world_size: int = 1
    ) -> None:
        if not len(indices):
            raise UserError("a stream needs at least one image")
        if not 0 <= rank < world_size:
            raise ValueError(f"rank {rank} is not one of {world_size} processes")
        self._images, self._indices, self._seed = images, indices, seed
        self._rank, self._world_size = rank, world_size
        self._passes, self._position = 0, 0
        self._orders: dict[int, Tensor] = {}

    def next(self, number: int) -> tuple[Tensor, Tensor]:
        """The next `number` images of this process, and their labels, on the images' device."""
        if number < 1:
            raise ValueError(f"a batch has at least one image, got {number}")
        own, self._passes, self._position = self._take(self._passes, self._position, number)
        images = self._images.fetch(own)
        labels = to_device(self._images.labels[own], images.device)
        passes, position, coming = self._passes, self._position, list[Tensor]()
        for _ in range(_AHEAD):
            taken, passes, position = self._take(passes, position, number)
            coming.append(taken)
        self._images.ahead(torch.cat(coming))
        return images, labels

    def state(self) -> dict[str, int]:
        """The position as plain data."""
        return {"passes": self._passes, "position": self._position}

    def load_state(self, state: Mapping[str, int]) -> None:
        """Go to a saved position, forwards or backwards."""
        passes, position = state["passes"], state["position"]
        integers = type(passes) is int and type(position) is int
        if not integers or passes < 0 or not 0 <= position < len(self._indices):
            raise UserError(
                f"the saved position ({passes} passes and {position} images) does not exist in a "
                f"stream of {len(self._indices)} images: is this the same data?"
            )
        self._passes, self._position = passes, position

    def _take(self, passes: int, position: int, number: int) -> tuple[Tensor, int, int]:
        """The `number` indices of this process from a position on, and where all of them end."""
        pieces: list[Tensor] = []
        missing = number * self._world_size
        while missing:
            piece = self._order(passes)[position : position + missing]
            pieces.append(piece)
            missing -= len(piece)
            position += len(piece)
            if position == len(self._indices):
                passes, position = passes + 1, 0
        own = torch.cat(pieces)[self._rank * number : (self._rank + 1) * number]
        return own, passes, position

    def _order(self, number: int) -> Tensor:
        """The indices in the order of one pass."""
        if number not in self._orders:
            digest = hashlib.sha256(f"{self._seed}:{number}".encode()).digest()
            generator = torch.Generator().manual_seed(int.from_bytes(digest[:8]) >> 1)
            order = self._indices[torch.randperm(len(self._indices), generator=generator)]
            # The latest three: a batch may span passes, and a rewind may return to an older one.
            latest = list(self._orders.items())[-2:]
            self._orders = dict([*latest, (number, order)])
        return self._orders[number]

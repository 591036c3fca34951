"""Endless shuffled streams of images, whose position is all there is to save."""

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor

from prnas.data.dataset import Images
from prnas.io.errors import UserError

_AHEAD = 2  # batches that a streamed set is told of in advance


class Stream:
    """An endless shuffled stream over some places of a set of images.

    Every pass takes each place once, in an order that follows from the seed and the number of the
    pass. How the images are cut into batches, and by how many processes, changes nothing in it.
    """

    def __init__(
        self, images: Images, places: Tensor, seed: int, rank: int = 0, world_size: int = 1
    ) -> None:
        if not len(places):
            raise UserError("a stream needs at least one image")
        if not 0 <= rank < world_size:
            raise ValueError(f"rank {rank} is not one of {world_size} processes")
        self._images = images
        self._places = places
        self._seed = seed
        self._rank = rank
        self._world_size = world_size
        self._passes = 0
        self._position = 0
        self._orders: dict[int, Tensor] = {}

    def next(self, number: int) -> tuple[Tensor, Tensor]:
        """The next `number` images of this process, and their labels, on the images' device.

        All processes together take `number` times their number, one slice each.
        """
        if number < 1:
            raise ValueError(f"a batch has at least one image, got {number}")
        together = number * self._world_size
        taken, self._passes, self._position = self._take(self._passes, self._position, together)
        own = self._slice(taken, number)
        images = self._images.fetch(own)
        labels = self._images.labels[own].to(images.device)
        self._announce(number)
        return images, labels

    def state(self) -> dict[str, int]:
        """The position, as plain data."""
        return {"passes": self._passes, "position": self._position}

    def load_state(self, state: Mapping[str, int]) -> None:
        """Go to a saved position, forwards or backwards."""
        passes, position = state["passes"], state["position"]
        whole = type(passes) is int and type(position) is int
        if not whole or passes < 0 or not 0 <= position < len(self._places):
            raise UserError(
                f"the saved position ({passes} passes and {position} images) is none of a stream "
                f"of {len(self._places)} images: is this the same data?"
            )
        self._passes, self._position = passes, position

    def _take(self, passes: int, position: int, number: int) -> tuple[Tensor, int, int]:
        """Places from a position on, and the position after them."""
        parts: list[Tensor] = []
        while number:
            part = self._order(passes)[position : position + number]
            parts.append(part)
            number -= len(part)
            position += len(part)
            if position == len(self._places):
                passes, position = passes + 1, 0
        return torch.cat(parts), passes, position

    def _order(self, number: int) -> Tensor:
        """The places in the order of one pass."""
        if number not in self._orders:
            digest = hashlib.sha256(f"{self._seed}:{number}".encode()).digest()
            generator = torch.Generator().manual_seed(int.from_bytes(digest[:8]) >> 1)
            order = self._places[torch.randperm(len(self._places), generator=generator)]
            # The latest few: a batch may span passes, and a rewind may return to the one before.
            kept = list(self._orders.items())[-2:]
            self._orders = dict([*kept, (number, order)])
        return self._orders[number]

    def _slice(self, taken: Tensor, number: int) -> Tensor:
        return taken[self._rank * number : (self._rank + 1) * number]

    def _announce(self, number: int) -> None:
        passes, position = self._passes, self._position
        coming: list[Tensor] = []
        for _ in range(_AHEAD):
            together = number * self._world_size
            taken, passes, position = self._take(passes, position, together)
            coming.append(self._slice(taken, number))
        self._images.ahead(torch.cat(coming))

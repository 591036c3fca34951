"""Generators by name: each part of a run draws from its own, whatever the others do."""

import hashlib
from random import Random
from typing import Any

import torch


def seed_for(seed: int, *names: str | int) -> int:
    """A seed of 63 bits for one purpose of a run."""
    text = "/".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def torch_generator(seed: int, *names: str | int) -> torch.Generator:
    """On the CPU, so that every device sees the same numbers."""
    return torch.Generator().manual_seed(seed_for(seed, *names))


def random_state(generator: Random) -> list[Any]:
    """The state of a Python generator as plain data."""
    version, numbers, gauss = generator.getstate()
    return [version, list(numbers), gauss]


def set_random_state(generator: Random, state: list[Any]) -> None:
    version, numbers, gauss = state
    generator.setstate((version, tuple(numbers), gauss))

"""Generators by name: each part of a run draws from its own, whatever the others do."""

import hashlib

import torch


def seed_for(seed: int, *names: str | int) -> int:
    """A seed of 63 bits for one purpose of a run."""
    text = "/".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def torch_generator(seed: int, *names: str | int) -> torch.Generator:
    """On the CPU, so that every device sees the same numbers."""
    return torch.Generator().manual_seed(seed_for(seed, *names))

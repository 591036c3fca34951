"""Seeded generators of PyTorch."""

import torch


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)

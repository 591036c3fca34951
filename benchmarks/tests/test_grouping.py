"""The ways that the benchmark compares compute the same."""

import torch

from benchmarks.grouping import ways


def test_all_ways_give_the_same_gradients() -> None:
    named = ways(4, 6, 3, 3, 2)
    separate = named.pop("separate")()
    for way in named.values():
        torch.testing.assert_close(way(), separate, rtol=1e-4, atol=1e-4)

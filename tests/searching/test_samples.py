"""Steps that average the gradients of several samples."""

from pathlib import Path
from typing import Any

import pytest
import torch

from prnas.config.search import SearchConfig
from prnas.config.sections import ComputeConfig
from prnas.data.dataset import load
from prnas.runs.attempt import attempt
from prnas.runs.batch_size import CpuProbe
from prnas.runs.context import RunContext
from prnas.runs.processes import Processes
from prnas.searching.search import Search
from tests.support.settings import small_config


def search_of(images: Path, samples: int) -> Search:
    settings: dict[str, Any] = {"relaxation": "gdas", "samples": samples}
    config: SearchConfig = small_config(images, architecture=settings)
    processes = Processes(ComputeConfig(accelerator="cpu"))
    data = load(config.images, processes.device, print, 1e9)
    indices = Search.prepare(config, data, 1)
    return Search(RunContext(config, data, indices, processes, CpuProbe(None), None))


@pytest.mark.parametrize("part", ["weights", "architecture"])
def test_gradients_are_the_mean_of_single_ones(images: Path, part: Any) -> None:
    def gradients(samples: int, skipped: int) -> dict[str, torch.Tensor]:
        """Of as many samples, after those that were skipped."""
        search = search_of(images, samples)
        state = search.state
        state.supernet.train()
        draws = state.generators["dropout"]
        for _ in range(skipped):
            state.supernet.mixing(draws)
        attempt(search, [part], lambda: search.step.gradients(part))
        named = state.supernet.named_parameters()
        return {name: weight.grad for name, weight in named if weight.grad is not None}

    together = gradients(3, 0)
    singles = [gradients(1, skipped) for skipped in range(3)]
    assert together.keys() == set().union(*singles)
    for name, gradient in together.items():
        parts = [single[name] for single in singles if name in single]
        assert torch.allclose(gradient, torch.stack(parts).sum(0) / 3, rtol=1e-4, atol=1e-6), name


@pytest.mark.parametrize("step", ["first-order", "second-order"])
@pytest.mark.parametrize("relaxation", ["gdas", "rome"])
def test_a_cell_that_zeros_cut_off_trains_weights_and_no_architecture(
    images: Path, relaxation: str, step: str
) -> None:
    """All that is left of the network comes after the cells, and the loss depends on no edge."""
    plain = small_config(images, space="nasbench201").to_data()
    plain["network"] = {"cells": 3, "channels": 4, "shape": "nasbench201"}
    plain["architecture"] |= {"relaxation": relaxation, "step": step}
    config = SearchConfig.from_data(plain)
    processes = Processes(ComputeConfig(accelerator="cpu"))
    data = load(config.images, processes.device, print, 1e9)
    indices = Search.prepare(config, data, 1)
    search = Search(RunContext(config, data, indices, processes, CpuProbe(None), None))
    search.state.position.epoch = 1  # No grace epoch.
    supernet = search.state.supernet
    supernet.train()
    pools = supernet.pools.cell("normal").edges
    architecture = [p for name, p in supernet.named_parameters() if "architecture" in name]
    assert len(architecture) == len(pools) == 6
    with torch.no_grad():
        for weights, pool in zip(architecture, pools, strict=True):
            labels = [candidate.label for candidate in pool.candidates]
            weights.fill_(-1e4)
            weights[labels.index("zero")] = 0.0
    before = {name: weight.clone() for name, weight in supernet.named_parameters()}
    search.take_step()
    after = dict(supernet.named_parameters())
    moved = {name for name, weight in after.items() if not torch.equal(weight, before[name])}
    assert any("classifier" in name for name in moved)
    assert not any("stem" in name for name in moved)
    # The second order has a gradient of zero, with which all but a zero decay.
    assert any("architecture" in name for name in moved) == (step == "second-order")
    assert all(weights.max() == 0 for weights in architecture)

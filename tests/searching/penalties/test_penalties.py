"""The penalty of SNAS: what the candidates that a pass mixes cost."""

from pathlib import Path

import pytest
import torch

import prnas
from prnas.nets.supernet import build_supernet
from prnas.searching.penalties.resources import ResourcePenalty, cost, costs
from prnas.searching.steps import SearchStep
from prnas.space.operations import Conv, Pool, Skip, Zero
from prnas.space.pools import Pools
from tests.support.settings import small_config


def test_what_an_operation_costs() -> None:
    assert cost(Zero(), 16, (8, 8), 1) == 0
    assert cost(Skip(), 16, (8, 8), 1) == pytest.approx(0.43 * 2 * 16 * 64 / 100)
    assert cost(Pool("max", 3), 16, (8, 8), 2) == pytest.approx(0.43 * 16 * (64 + 16) / 100)
    size = Conv(3).size(16, (8, 8), 1)
    accesses = 2 * 16 * 64 + size.parameters
    expected = 0.43 * (2 * size.parameters + size.macs / 4000 + accesses / 100)
    assert cost(Conv(3), 16, (8, 8), 1) == pytest.approx(expected)


def test_the_cells_of_a_role_count_by_their_mean() -> None:
    pool = (Zero(), Skip(), Conv(3))
    supernet = build_supernet(Pools.initial(2, pool), 4, 6, 3)
    found = costs(supernet, (16, 16))
    # Reductions are the cells 2 and 4: they halve the pixels and double the channels.
    sizes = [(4, 16), (4, 16), (8, 8), (16, 4)]  # of the normal cells 0, 1, 3, 5
    for edge in found["normal"]:
        for op, value in zip(pool, edge.tolist(), strict=True):
            each = [cost(op, channels, (pixels, pixels), 1) for channels, pixels in sizes]
            assert value == pytest.approx(sum(each) / 4)
    positions = supernet.pools.cell("reduction").positions
    for (_, source), edge in zip(positions, found["reduction"], strict=True):
        for op, value in zip(pool, edge.tolist(), strict=True):
            if source < 2:
                each = [cost(op, 8, (16, 16), 2), cost(op, 16, (8, 8), 2)]
            else:
                each = [cost(op, 8, (8, 8), 1), cost(op, 16, (4, 4), 1)]
            assert value == pytest.approx(sum(each) / 2)


def test_it_is_added_to_the_architectures_loss_and_makes_cheap_what_can_be(
    images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a great penalty nothing but cost decides; the dearest candidates fall behind."""
    terms: list[float] = []
    real = SearchStep.penalty

    def watched(self: SearchStep) -> torch.Tensor | None:
        term = real(self)
        assert term is not None
        state = self.search.state
        by_hand = [
            (mixing * value).sum().item()
            for role, edges in costs(state.supernet, (8, 8)).items()
            for mixing, value in zip(state.supernet.mixed[role], edges, strict=True)
        ]
        assert term.item() == pytest.approx(100 * sum(by_hand), rel=1e-5)
        terms.append(term.item())
        return term

    monkeypatch.setattr(SearchStep, "penalty", watched)
    cycle = {"epochs": 2, "grace_epochs": 0, "morphisms": 0, "candidates": 1}
    for step in ("first-order", "one-level"):
        settings = {"resource_penalty": 100.0, "lr": 0.3, "step": step}
        config = small_config(
            images,
            schedule={"cycles": [cycle]},
            architecture=settings,
            evidence={"measure": "none"},
        )
        terms.clear()
        found = prnas.search(config)
        assert terms[-1] < 0.7 * terms[0]
        labels = {edge.op.label for _, edge in found.genotype.normal.edges}
        assert not any(label.startswith("conv") for label in labels)


def test_it_is_off_by_default(images: Path) -> None:
    config = small_config(images)
    assert not ResourcePenalty.wanted(config)
    on = config.override(["architecture.resource_penalty=1e-5"])
    assert ResourcePenalty.wanted(on)

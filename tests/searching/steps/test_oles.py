"""Operation-level early stopping."""

from pathlib import Path
from typing import Any

import pytest
import torch

from prnas.config.search import SearchConfig
from prnas.data.dataset import load
from prnas.nets.supernet import build_supernet
from prnas.runs.batch_size import CpuProbe
from prnas.runs.context import RunContext
from prnas.runs.processes import Processes
from prnas.searching.api import start
from prnas.searching.search import Search
from prnas.searching.steps.oles import EarlyStopping, OlesStep, cosine
from prnas.space.operations import Conv, Pool, Skip
from prnas.space.pools import Pools
from tests.support.settings import small_config
from tests.support.watching import epochs_of, folder_of, last_state


def stopping(threshold: float = 0.4, checks: int = 2) -> EarlyStopping:
    supernet = build_supernet(Pools.initial(1, (Conv(3), Pool("max", 3), Skip())), 4, 3, 5)
    return EarlyStopping(supernet, threshold, checks)


def gradients(one: EarlyStopping, seed: int = 0) -> list[list[torch.Tensor | None]]:
    generator = torch.Generator().manual_seed(seed)
    return [
        [torch.randn(w.shape, generator=generator) for w in candidate] for candidate in one.weights
    ]


def test_a_cosine_is_the_mean_over_tensors() -> None:
    a, b = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 1.0]])
    like = torch.zeros(())
    assert cosine([a], [a], like).item() == pytest.approx(1)
    assert cosine([a], [-2 * a], like).item() == pytest.approx(-1)
    assert cosine([a, a], [b, a], like).item() == pytest.approx((0.5**0.5 + 1) / 2)
    assert cosine([a, torch.zeros(2)], [a, b[0]], like).item() == pytest.approx(0.5)
    assert cosine([a, None], [a, b], like).isnan()


def test_the_same_images_stop_nothing_and_opposite_gradients_everything() -> None:
    one = stopping()
    wanted = gradients(one)
    for _ in range(4):
        one.compare(wanted, wanted)
    assert not one.stopped
    opposite = [[None if g is None else -g for g in candidate] for candidate in wanted]
    one.compare(wanted, opposite)
    assert not one.stopped  # only a mean decides
    one.compare(wanted, opposite)
    # Of each of three cells two edges, on which only the convolution has weights; in the two
    # reductions also the skip.
    assert one.stopped == set(range(len(one.weights))) == set(range(3 * 2 + 2 * 2))


def test_the_threshold_is_of_the_mean() -> None:
    one = stopping(threshold=0.4, checks=2)
    wanted = gradients(one)
    half: list[list[torch.Tensor | None]] = [
        [g if number else -g for g in candidate if g is not None]
        for number, candidate in enumerate(wanted)
    ]
    one.compare(wanted, half)  # the first: -1, the others: 1
    one.compare(wanted, wanted)  # all: 1
    assert one.stopped == {0}
    one.compare(wanted, half)
    assert one.checked == 1  # the counting began anew


def test_unknown_gradients_are_not_counted() -> None:
    one = stopping(checks=1)
    wanted = gradients(one)
    unknown: list[list[torch.Tensor | None]] = [[None] * len(c) for c in wanted]
    one.compare(wanted, unknown)
    assert not one.stopped


def test_a_saved_state_is_taken_back() -> None:
    one, other = stopping(checks=3), stopping(checks=3)
    for seed in range(5):
        one.compare(gradients(one, seed), gradients(one, seed + 10))
    other.load_state(one.state())
    assert other.state() == one.state()
    with pytest.raises(ValueError, match="sums and counts"):
        other.load_state({**one.state(), "sums": [1.0]})
    with pytest.raises(ValueError, match="beyond"):
        other.load_state({**one.state(), "stopped": [99]})


def config(images: Path, **architecture: Any) -> SearchConfig:
    cycle = {"epochs": 3, "grace_epochs": 0, "morphisms": 0, "candidates": 1}
    return small_config(
        images,
        schedule={"cycles": [cycle]},
        architecture=architecture,
        evidence={"measure": "none"},
    )


def test_where_nothing_is_stopped_it_is_darts_to_the_bit(images: Path, tmp_path: Path) -> None:
    ours = config(images, step="oles", oles_checks=1, oles_threshold=-1.0)
    folders = [folder_of(start(one, runs=tmp_path)) for one in (ours, config(images))]
    records = [[record.scores for record in epochs_of(folder)] for folder in folders]
    assert records[0] == records[1]
    assert [record.stopped_candidates for record in epochs_of(folders[0])] == [0, 0, 0]


def test_stopped_weights_stay_to_the_bit(images: Path, tmp_path: Path) -> None:
    """With a threshold that no mean reaches, all are stopped after the first comparison."""
    settings = config(images, step="oles", oles_checks=1, oles_threshold=1.0)
    folder = folder_of(start(settings, runs=tmp_path))
    stopped = [record.stopped_candidates for record in epochs_of(folder)]
    assert stopped[0] == stopped[-1]
    assert stopped[0]
    _, tensors = last_state(folder)
    momenta = [name for name in tensors if name.startswith("weights_optimizer/cells")]
    assert not [name for name in momenta if ".operations." in name]  # they never took a step
    assert [name for name in momenta if ".preprocess." in name]


def test_weights_that_trained_before_stay_to_the_bit_once_stopped(images: Path) -> None:
    """Neither their momentum nor the decay moves them; all others train on."""
    settings = config(images, step="oles", oles_checks=2, oles_threshold=1.0)
    processes = Processes(settings.compute)
    data = load(settings.images, processes.device, lambda _: None, 1e9)
    indices = Search.prepare(settings, data, 1)
    search = Search(RunContext(settings, data, indices, processes, CpuProbe(None), None))
    assert isinstance(search.step, OlesStep)
    state, stopping = search.state, search.step.stopping
    assert settings.weights.weight_decay > 0
    state.supernet.train()
    before = [weight.detach().clone() for weight in state.weight_parameters]
    search.take_step()
    assert not stopping.stopped
    search.take_step()
    assert stopping.stopped
    stopped = {id(w) for number in stopping.stopped for w in stopping.weights[number]}
    then = [weight.detach().clone() for weight in state.weight_parameters]
    for _ in range(3):
        search.take_step()
    rows = zip(state.weight_parameters, before, then, strict=True)
    for weight, first, second in rows:
        assert torch.equal(weight, second) == (id(weight) in stopped)
        if id(weight) in stopped:
            assert not torch.equal(first, second)  # it trained in the first step
            assert state.weights_optimizer.state[weight]["momentum_buffer"].any()

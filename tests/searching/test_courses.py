"""What changes from epoch to epoch: dropout of skips, learning rate, temperature."""

from pathlib import Path
from typing import Any

import pytest
import torch

import prnas
from prnas.nets.relaxations.threshold import Threshold
from prnas.nets.supernet import Supernet
from prnas.runs.preparation import power_cosine
from prnas.searching.api import start
from tests.support.settings import small_config
from tests.support.watching import epochs_of, folder_of, last_state, without_varying


def cycles(**more: Any) -> dict[str, Any]:
    first = {"epochs": 4, "grace_epochs": 2, "morphisms": 0, "candidates": 3, **more}
    return {"cycles": [first, {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1}]}


def test_the_dropout_of_skips_falls_within_a_cycle(
    images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float] = []
    real = Supernet.forward

    def watched(self: Supernet, *rest: Any) -> torch.Tensor:
        dropout = self.search_cells[0].skip_dropout
        if self.training and self.relaxation.trained and (not seen or seen[-1] != dropout):
            seen.append(dropout)
        return real(self, *rest)

    monkeypatch.setattr(Supernet, "forward", watched)
    schedule = cycles(skip_dropout=0.8, skip_dropout_decay=0.2)
    prnas.search(small_config(images, schedule=schedule, evidence={"measure": "none"}))
    expected = [0.8 * 3 / 4, 0.8 * 2 / 4, 0.8, 0.8 * 2.718281828 ** (-0.2), 0.0]
    assert seen == pytest.approx(expected)


def test_the_rate_follows_its_course_in_every_cycle(images: Path) -> None:
    weights = {"lr": 0.1, "lr_min": 0.01, "cosine_power": 3.0, "warmup_epochs": 1}
    schedule = cycles()
    schedule["cycles"][1]["epochs"] = 2
    config = small_config(images, schedule=schedule, weights=weights)
    found = prnas.search(config.override(["evidence.measure=none"]))
    course = (3.0, 1)
    expected = [power_cosine(0.1, 0.01, epoch, 4, *course) for epoch in range(4)]
    expected += [power_cosine(0.1, 0.01, epoch, 2, *course) for epoch in range(2)]
    assert [one.lr for one in found.epochs] == expected
    assert expected[0] == expected[1] == pytest.approx(0.1)


def test_the_temperature_is_that_of_the_epoch(
    images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, float]] = []
    real = Threshold.mix

    def watched(self: Threshold, *rest: Any) -> list[torch.Tensor]:
        if self.trained:
            seen.append((self.progress.epoch, self.temperature))
        return real(self, *rest)

    monkeypatch.setattr(Threshold, "mix", watched)
    anneal = {"start": 2.0, "end": 0.5, "shape": "linear"}
    architecture = {"relaxation": "threshold", "temperature": anneal}
    prnas.search(
        small_config(
            images,
            schedule=cycles(epochs=5),
            architecture=architecture,
            evidence={"measure": "none"},
        )
    )
    whole, last = {}, seen[-1]
    for epoch, temperature in seen:
        whole.setdefault(epoch, temperature)
    assert whole == {0: 2.0, 1: 2.0, 2: 2.0, 3: 1.25, 4: 0.5}
    assert last == (0, 0.5)  # the only epoch of a cycle is its last


def test_without_threshold_and_temperature_asap_is_darts_to_the_bit(
    images: Path, tmp_path: Path
) -> None:
    """A whole search, with its measurements; only what stands for the weights has other numbers."""
    runs = []
    for relaxation in ("softmax", "threshold"):
        settings = {"relaxation": relaxation}
        if relaxation == "threshold":
            settings |= {"threshold": 0.0}
        config = small_config(images, schedule=cycles(), architecture=settings)
        runs.append(folder_of(start(config, runs=tmp_path, name=relaxation)))
    ours, theirs = (last_state(run)[1] for run in runs)
    buffers = {name for name in theirs if name.startswith("supernet/relaxation.")}
    assert buffers
    assert ours.keys() == theirs.keys() - buffers
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())
    one, other = ([without_varying(epoch) for epoch in epochs_of(run)] for run in runs)
    assert one == other


def test_auxiliary_skips_that_never_weigh_anything_are_darts_to_the_bit(
    images: Path, tmp_path: Path
) -> None:
    """A whole search; with a weight above 0 it is another, so the comparison can fail."""
    tensors: list[dict[str, torch.Tensor]] = []
    for weight in (None, 0.0, 0.5):
        skip = None if weight is None else {"start": weight, "end": weight}
        config = small_config(images, schedule=cycles(), architecture={"auxiliary_skip": skip})
        run = folder_of(start(config, runs=tmp_path, name=f"weight-{weight}"))
        tensors.append(last_state(run)[1])
    darts, without, helped = tensors
    assert darts.keys() == without.keys()
    assert all(torch.equal(tensor, without[name]) for name, tensor in darts.items())
    name = "supernet/classifier.weight"
    assert not torch.equal(darts[name], helped[name])


def test_with_a_radius_of_zero_random_smoothing_is_darts_to_the_bit(
    images: Path, tmp_path: Path
) -> None:
    """A whole search; with a radius above 0 it is another, so the comparison can fail."""
    tensors: list[dict[str, torch.Tensor]] = []
    for radius in (None, 0.0, 0.1):
        smoothing = None if radius is None else {"start": radius, "end": radius}
        config = small_config(
            images, schedule=cycles(), architecture={"random_smoothing": smoothing}
        )
        run = folder_of(start(config, runs=tmp_path, name=f"radius-{radius}"))
        tensors.append(last_state(run)[1])
    darts, still, moved = tensors
    assert darts.keys() == still.keys()
    assert all(torch.equal(tensor, still[name]) for name, tensor in darts.items())
    assert not all(torch.equal(tensor, moved[name]) for name, tensor in darts.items())

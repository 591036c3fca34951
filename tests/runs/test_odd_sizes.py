"""Few images, tiny ones, one class, one candidate, extreme weights: it works, or says why not."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from prnas.io.errors import UserError
from prnas.models.evaluate import evaluate
from prnas.retraining import api as retrain
from prnas.runs.events import SearchResult
from prnas.searching.api import start
from prnas.searching.search import Search
from prnas.space.genotype import ROLES
from tests.support.settings import small_config, small_training

ONE_CYCLE = {"cycles": [{"epochs": 2, "grace_epochs": 1, "morphisms": 0, "candidates": 1}]}


def write(
    path: Path, number: int, size: int | tuple[int, int], classes: int, *, test: int = 2
) -> Path:
    """Random grey images; with more classes than images, labels are far apart."""
    shape = (size, size) if isinstance(size, int) else size
    random = np.random.default_rng(0)
    labels = np.linspace(0, classes - 1, number).round().astype(np.int64)
    pixels = random.integers(0, 256, (number + test, *shape), np.uint8)
    np.savez(
        path,
        x_train=pixels[:number],
        y_train=labels,
        x_test=pixels[number:],
        y_test=np.arange(test) % classes,
        class_names=np.array([f"class {one}" for one in range(classes)]),
    )
    return path


def search(data: Path, batch: int, **changes: Any) -> SearchResult:
    rule = {"min": batch, "multiple": 1, "max": batch}
    return start(small_config(data, batch=rule, **{"schedule": ONE_CYCLE, **changes}), runs=None)


def train(data: Path, batch: int, **network: Any) -> Any:
    config = small_training(
        data,
        batch={"min": batch, "multiple": 1, "max": batch},
        training={"epochs": 1, "warmup_epochs": 0},
        network={"cells": 3, "channels": 4, "drop_path": 0.2, **network},
    )
    return retrain.start(config, runs=None)


SIZES = [1, 2, (1, 9), (7, 2)]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_images_smaller_than_any_kernel(tmp_path: Path, size: int | tuple[int, int]) -> None:
    """Morphed kernels reach 7, with dilation 2: thirteen pixels, of which padding is most."""
    data = write(tmp_path / "a.npz", 16, size, 3)
    grow = {"epochs": 1, "grace_epochs": 0, "morphisms": 3, "candidates": 7}
    last = {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1}
    found = search(data, 4, schedule={"cycles": [grow, grow, last]})
    assert all(math.isfinite(one.scores["weights"].loss) for one in found.epochs)
    result = train(data, 4)
    assert math.isfinite(result.epochs[0].scores["training"].loss)
    assert 0 <= result.test_error <= 1


@pytest.mark.parametrize("stem", ["cifar", "imagenet"])
@pytest.mark.parametrize("size", [1, 4])
def test_tiny_images_train_with_either_stem(tmp_path: Path, size: int, stem: str) -> None:
    result = train(write(tmp_path / "a.npz", 8, size, 2), 2, stem=stem)
    assert math.isfinite(result.epochs[0].scores["training"].loss)


@pytest.mark.parametrize("number", [2, 3, 5])
def test_a_search_with_hardly_any_images(tmp_path: Path, number: int) -> None:
    found = search(write(tmp_path / "a.npz", number, 8, 2), 1)
    assert found.genotype
    assert all(math.isfinite(one.scores["weights"].loss) for one in found.epochs)


def test_a_search_with_one_image_is_refused(tmp_path: Path) -> None:
    data = write(tmp_path / "a.npz", 1, 8, 2)
    with pytest.raises(UserError, match="at least two training images"):
        search(data, 1)


def test_a_training_with_one_image(tmp_path: Path) -> None:
    data = write(tmp_path / "a.npz", 1, 8, 2)
    result = train(data, 1, auxiliary_weight=0.0)
    assert math.isfinite(result.epochs[0].scores["training"].loss)


@pytest.mark.parametrize("task", ["search", "retrain"])
def test_one_image_of_one_pixel_has_no_deviation(tmp_path: Path, task: str) -> None:
    data = write(tmp_path / "a.npz", 8, 4, 2)
    with pytest.raises(UserError, match=r"4 x 4 pixels.* batch\.min must be 2 or more"):
        search(data, 1) if task == "search" else train(data, 1)
    # One more pixel on one side is enough for the search.
    assert search(write(tmp_path / "b.npz", 8, (4, 5), 2), 1).genotype


def test_one_image_and_an_auxiliary_head(tmp_path: Path) -> None:
    data = write(tmp_path / "a.npz", 8, 8, 2)
    with pytest.raises(UserError, match=r"auxiliary head.*2 or more, or network\.auxiliary_w"):
        train(data, 1)
    assert math.isfinite(train(data, 1, auxiliary_weight=0.0).epochs[0].scores["training"].loss)


def test_what_is_refused_leaves_nothing_behind(tmp_path: Path) -> None:
    data = write(tmp_path / "a.npz", 8, 4, 2)
    for batch in (1, 5):
        rule = {"min": batch, "multiple": 1, "max": batch}
        with pytest.raises(UserError, match=r"batch\.min"):
            start(small_config(data, batch=rule), runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_one_class_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="one class only; two are needed"):
        search(write(tmp_path / "a.npz", 12, 8, 1), 3)


def test_more_classes_than_images(tmp_path: Path) -> None:
    data = write(tmp_path / "a.npz", 12, 8, 100)
    assert search(data, 3).genotype
    result = train(data, 3)
    assert len(result.model.class_names) == 100
    tested = evaluate(result.model, f"npz:{data}", speed=False)
    assert tested.images == 2
    assert math.isfinite(tested.loss)


def test_pools_of_one_candidate(tmp_path: Path) -> None:
    """Nothing is to be chosen: architecture weights get no gradient, and the cell is what it is."""
    data = write(tmp_path / "a.npz", 16, 8, 3)
    for only in ("conv 3x3", "skip", "max 3x3"):
        space = {"initial_pool": [only]}
        found = search(data, 4, space=space)
        for role in ROLES:
            labels = {edge.op.label for node in found.genotype.cell(role).nodes for edge in node}
            assert labels == {only}


def begin_with_weights(extreme: float, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Search.go

    def go(self: Search) -> None:
        with torch.no_grad():
            for weights in self.state.architecture_parameters:
                weights[0], weights[1] = extreme, -extreme
        real(self)

    monkeypatch.setattr(Search, "go", go)


@pytest.mark.parametrize("extreme", [1e4, -1e4])
def test_extreme_architecture_weights(
    tmp_path: Path, extreme: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Softmax gives all to one candidate (or to all others): finite numbers, and a genotype."""
    begin_with_weights(extreme, monkeypatch)
    found = search(write(tmp_path / "a.npz", 16, 8, 3), 4)
    assert found.genotype
    for one in found.epochs:
        assert math.isfinite(one.scores["weights"].loss)
        assert math.isfinite(one.scores["validation"].loss)


@pytest.mark.parametrize("extreme", [1e30, -1e30, 3e38])
def test_architecture_weights_that_overflow_are_refused(
    tmp_path: Path, extreme: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The squares that Adam keeps of them, with weight decay, are infinite: located and told."""
    begin_with_weights(extreme, monkeypatch)
    with pytest.raises(UserError, match="not finite are in architecture_optimizer"):
        search(write(tmp_path / "a.npz", 16, 8, 3), 4)

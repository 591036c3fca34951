"""NaN and infinity, wherever they come from: caught within a step, located, and never saved."""

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from prnas.io.errors import UserError
from prnas.retraining import api as retrain
from prnas.runs.faults import first_not_finite
from prnas.runs.run import AnyRun, Run
from prnas.searching import api as search
from tests.support.settings import small_config, small_training
from tests.support.watching import Watch, assert_same_run

Running = list[AnyRun]


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Running:
    """The run under way, once there is one."""
    runs: Running = []
    real = Run.go

    def go(self: AnyRun) -> None:
        runs.append(self)
        real(self)

    monkeypatch.setattr(Run, "go", go)
    return runs


def spoil(tensor: Tensor, value: float) -> None:
    with torch.no_grad():
        tensor[(0,) * tensor.ndim] = value


@pytest.mark.parametrize(
    ("where", "value"),
    [("weight", math.nan), ("architecture", math.inf), ("momentum", -math.inf)],
)
def test_in_the_state_of_a_search(
    where: str, value: float, running: Running, images: Path, tmp_path: Path, reference: Path
) -> None:
    def act() -> None:
        state = running[0].state
        if where == "momentum":
            optimizer = state.weights_optimizer
            spoil(optimizer.state[state.weight_parameters[0]]["momentum_buffer"], value)
        elif where == "weight":
            spoil(state.weight_parameters[0], value)
        else:
            spoil(state.architecture_parameters[0], value)

    # What is in the weights shows in the next step; what momentum does to them, in the one after.
    said = r"\(cycle 1, epoch 2, step [23]\): first non-finite tensor: "
    place = {"weight": r"stem", "architecture": "normal", "momentum": "stem"}[where]
    with pytest.raises(UserError, match=said) as caught:
        search.start(small_config(images), runs=tmp_path, name="a", callbacks=[Watch(5, act)])
    assert place in str(caught.value)
    assert "The last checkpoint is kept" in str(caught.value)
    search.resume(tmp_path / "a")
    assert_same_run(tmp_path / "a", reference)


@pytest.mark.parametrize("part", ["weights", "architecture"])
@pytest.mark.parametrize("what", ["images", "gradient"])
def test_in_a_step_of_a_search(
    part: str,
    what: str,
    images: Path,
    tmp_path: Path,
    reference: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if what == "images":
        next_images = Run.next_images

        def spoiled(self: AnyRun, of: str) -> tuple[Tensor, Tensor]:
            found, labels = next_images(self, of)
            if of == part and self.state.position.cycle_step == 5:
                spoil(found, float("nan"))
            return found, labels

        monkeypatch.setattr(Run, "next_images", spoiled)
    else:
        optimize = Run.optimize

        def with_bad_gradient(self, of, parameters, *rest):  # pyright: ignore
            if of == part and self.state.position.cycle_step == 5:
                spoil(parameters[1].grad, float("inf"))
            optimize(self, of, parameters, *rest)

        monkeypatch.setattr(Run, "optimize", with_bad_gradient)
    said = {
        "images": "loss .* first non-finite tensor: the images",
        "gradient": "first non-finite tensor: the gradient",
    }
    with pytest.raises(UserError, match=said[what]) as caught:
        search.start(small_config(images), runs=tmp_path, name="a")
    assert "cycle 1, epoch 2, step 2" in str(caught.value)
    monkeypatch.undo()
    search.resume(tmp_path / "a")
    assert_same_run(tmp_path / "a", reference)


@pytest.mark.parametrize("where", ["weight", "statistics"])
def test_in_the_state_of_a_training(
    where: str, running: Running, images: Path, tmp_path: Path
) -> None:
    def act() -> None:
        network = running[0].state.module
        tensors = network.parameters() if where == "weight" else network.buffers()
        spoil(next(one for one in tensors if one.is_floating_point()), float("nan"))

    with pytest.raises(UserError, match=r"non-finite.*stem|not finite.*stem") as caught:
        retrain.start(small_training(images), runs=tmp_path, name="a", callbacks=[Watch(2, act)])
    assert "The last checkpoint is kept" in str(caught.value)
    retrain.resume(tmp_path / "a")
    retrain.start(small_training(images), runs=tmp_path, name="whole")
    assert_same_run(tmp_path / "a", tmp_path / "whole")


def test_the_first_is_named_and_counted() -> None:
    fine, whole = torch.ones(3), torch.arange(3)
    assert first_not_finite([("a", fine), ("b", whole)]) is None
    bad = torch.tensor([1.0, float("nan"), float("inf"), 1e38])
    assert first_not_finite([("a", fine), ("b", bad), ("c", bad)]) == "b (2 of 4 values)"

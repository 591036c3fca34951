"""The examples run, and do what they say."""

import os
import runpy
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

import prnas
from prnas.config.search import SearchConfig
from prnas.io.errors import UserError
from prnas.nets import relaxations
from prnas.nets.relaxations import Softmax
from prnas.runs.named import config_of
from prnas.runs.run import Stopped
from prnas.searching import steps
from prnas.searching.api import resume, start
from prnas.searching.search import Search
from prnas.searching.steps import FirstOrderStep
from prnas.searching.time_left import epoch_work
from tests.support.watching import Watch, assert_same_run

EXAMPLES = Path(__file__).parents[1] / "examples"
TINY = EXAMPLES / "tiny.yaml"


def load(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


@pytest.mark.usefixtures("own_operations")
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_it_runs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(path), run_name="__main__")
    assert "Genotype(normal=" in capsys.readouterr().out


def test_every_example_is_listed() -> None:
    text = (EXAMPLES / "README.md").read_text()
    assert all(f"`{path.name}`" in text for path in EXAMPLES.glob("*.py"))


def test_an_unknown_relaxation_or_step_is_named_with_the_choices() -> None:
    for key, choice in (("relaxation", "softmax"), ("step", "first-order")):
        with pytest.raises((UserError, ValueError), match=f"(?s)'nonsense'.*{choice}"):
            prnas.search(TINY, overrides=[f"architecture.{key}=nonsense"])


def test_the_names_of_prnas_are_taken() -> None:
    """A step or a relaxation of one's own cannot take the place of a built-in one unseen."""

    class OwnStep(FirstOrderStep):
        pass

    class OwnRelaxation(Softmax):
        pass

    with pytest.raises(ValueError, match="'first-order' is a step of prnas"):
        steps.register(OwnStep)
    with pytest.raises(ValueError, match="'softmax' is a relaxation of prnas"):
        relaxations.register(OwnRelaxation)
    steps.register(FirstOrderStep)
    relaxations.register(Softmax)
    chosen = SearchConfig().architecture
    assert steps.step_type(chosen) is FirstOrderStep
    assert type(relaxations.make_relaxation(chosen)) is Softmax


class SeenError(Exception):
    """All that a test wants of a search is there."""


def gradients_at_start(step: str, monkeypatch: pytest.MonkeyPatch, *more: str) -> list[Any]:
    """The gradients of the first architecture step, with which the search ends."""
    seen: list[list[torch.Tensor]] = []
    real = Search.optimize

    def watched(self: Search, part: str, parameters: Any, *rest: Any) -> None:
        if part == "architecture":
            seen.append([weight.grad.clone() for weight in parameters])
            raise SeenError
        real(self, part, parameters, *rest)

    monkeypatch.setattr(Search, "optimize", watched)
    cycles = "schedule.cycles.0.grace_epochs=0"
    precision = "compute.precision=64-true"
    with pytest.raises(SeenError):
        prnas.search(TINY, overrides=[f"architecture.step={step}", cycles, precision, *more])
    monkeypatch.undo()
    return seen[0]


def test_the_second_order_step_is_first_order_without_looking_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a learning rate of almost nothing both gradients agree; with a real one they do not."""
    load("own_step")
    still = ("weights.lr=1e-12", "weights.lr_min=1e-12")
    first = gradients_at_start("first-order", monkeypatch, *still)
    second = gradients_at_start("second-order", monkeypatch, *still)
    for one, other in zip(first, second, strict=True):
        assert torch.allclose(one, other, rtol=1e-6, atol=1e-9)
    ahead = gradients_at_start("second-order", monkeypatch, "weights.lr=0.1")
    assert not all(
        torch.allclose(one, other, rtol=1e-3) for one, other in zip(first, ahead, strict=True)
    )


def test_the_second_order_step_looks_ahead_with_the_images_of_its_weight_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load("own_step")
    seen: list[tuple[str, torch.Tensor]] = []
    real = Search.next_images

    def watched(self: Search, part: str) -> tuple[torch.Tensor, torch.Tensor]:
        images, labels = real(self, part)
        seen.append((part, images.clone()))
        if len(seen) == 6:
            raise SeenError
        return images, labels

    monkeypatch.setattr(Search, "next_images", watched)
    overrides = ["architecture.step=second-order", "schedule.cycles.0.grace_epochs=0"]
    with pytest.raises(SeenError):
        prnas.search(TINY, overrides=[*overrides, "data.crop_padding=2"])
    assert [part for part, _ in seen] == ["architecture", "weights", "weights"] * 2
    images = [images for _, images in seen]
    assert torch.equal(images[1], images[2])
    assert torch.equal(images[4], images[5])
    assert not torch.equal(images[1], images[4])


def test_the_time_left_follows_the_cost_of_a_step() -> None:
    load("own_step")
    grace, both = "schedule.cycles.0.grace_epochs=1", "schedule.cycles.0.epochs=2"
    works = {
        step: epoch_work(
            config_of(TINY, [f"architecture.step={step}", grace, both], SearchConfig), 0
        )
        for step in ("first-order", "second-order")
    }
    first, second = works["first-order"], works["second-order"]
    assert first[0] == second[0]  # a grace epoch
    validation = 0.15
    assert first[1] / first[0] == pytest.approx((1.5 + validation) / (1 + validation))
    assert second[1] / second[0] == pytest.approx((4 + validation) / (1 + validation))


OWN_POOL = "space.initial_pool=[skip, max 3x3, excited 3x3 r8, excited 3x3 r2]"


@pytest.mark.usefixtures("own_operations")
@pytest.mark.parametrize(
    ("name", "override", "last_step"),
    [
        ("own_relaxation", "architecture.relaxation=cooling-softmax", 7),
        ("own_step", "architecture.step=second-order", 7),
        ("own_operation", OWN_POOL, 7),
        ("own_operation", OWN_POOL, 12),  # after children came
    ],
)
def test_a_stopped_search_goes_on_bit_for_bit(
    name: str, override: str, last_step: int, tmp_path: Path
) -> None:
    load(name)
    config = config_of(TINY, [override], SearchConfig)
    start(config, runs=tmp_path, name="whole")
    stop = Watch(last_step, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Stopped):
        start(config, runs=tmp_path, name="cut", callbacks=[stop])
    resume(tmp_path / "cut")
    assert_same_run(tmp_path / "cut", tmp_path / "whole")
    if name == "own_operation":
        assert "halve reduction" in (tmp_path / "cut" / "records.jsonl").read_text()

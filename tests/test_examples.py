"""The examples run, and do what they say."""

import os
import runpy
import signal
from pathlib import Path
from typing import Any

import pytest

import prnas
from prnas.config.search import SearchConfig
from prnas.io.errors import UserError
from prnas.nets import relaxations
from prnas.nets.relaxations import Softmax
from prnas.runs.events import Callback, StepEvent
from prnas.runs.named import config_of
from prnas.runs.run import Stopped
from prnas.searching import steps
from prnas.searching.api import resume, start
from prnas.searching.steps import FirstOrderStep
from tests.support.watching import Watch, assert_same_run

EXAMPLES = Path(__file__).parents[1] / "examples"
TINY = EXAMPLES / "tiny.yaml"


def load(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


@pytest.mark.usefixtures("own_operations")
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_it_runs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(path), run_name="__main__")
    assert "Genotype(normal: " in capsys.readouterr().out


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


def test_the_architecture_learns_in_every_second_step() -> None:
    load("own_step")
    parts: list[str] = []

    class Watched(Callback):
        def on_step(self, step: StepEvent) -> None:
            images = {part: score.images for part, score in step.scores.items()}
            parts.append(f"{step.epoch} {images.get('architecture', 0)}/{images['weights']}")

    overrides = ["architecture.step=every-second", "schedule.cycles.0.epochs=2"]
    prnas.search(TINY, overrides=overrides, callbacks=[Watched()])
    assert parts[:5] == [f"1 0/{16 * step}" for step in range(1, 6)]  # a grace epoch
    assert parts[5:10] == ["2 0/16", "2 16/32", "2 16/48", "2 32/64", "2 32/80"]


OWN_POOL = "space.initial_pool=[skip, max 3x3, excited 3x3 r8, excited 3x3 r2]"


@pytest.mark.usefixtures("own_operations")
@pytest.mark.parametrize(
    ("name", "override", "last_step"),
    [
        ("own_relaxation", "architecture.relaxation=cooling-softmax", 7),
        ("own_step", "architecture.step=every-second", 7),
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

"""A budget in images, steps or seconds counts the whole search, with the supernet's training."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from prnas.config.search import SearchConfig
from prnas.runs.checkpoint import Checkpoints
from prnas.runs.events import StepEvent
from prnas.runs.run import Stopped
from prnas.searching.api import resume, start
from prnas.searching.asking import Cost
from prnas.searching.search import Search
from prnas.searching.spending import Spending
from tests.support.shared_weights import At, enas, shared
from tests.support.watching import Watch, assert_same_run, folder_of, last_state

# The two halves have 48 images each: an epoch of `shared` has 6 steps of 8 images, and its
# validation 3 batches of 16. A cell is scored on one such batch, a finalist on all three.
BATCH, HALF = 8, 48


def bounded(images: Path, budget: str, *overrides: str) -> SearchConfig:
    return shared(images, "random").override(
        ["batch.max=8", "schedule.cycles.0.epochs=3", f"searcher.budget={budget}", *overrides]
    )


class Steps(Watch):
    """Counts steps and notes messages, and may stop the search after one of the steps."""

    def __init__(self, stop_after: int | None = None) -> None:
        super().__init__(0, lambda: None)
        self.steps: list[StepEvent] = []
        self.messages: list[str] = []
        self._stop_after = stop_after

    def on_step(self, step: StepEvent) -> None:
        self.steps.append(step)
        if len(self.steps) == self._stop_after:
            os.kill(os.getpid(), signal.SIGTERM)

    def on_message(self, text: str) -> None:
        self.messages.append(text)


def spent(folder: Path) -> dict[str, Any]:
    return last_state(folder)[0]["spending"]


# Steps of training, epochs (the last may be cut), evaluations, finalists, and what they come to.
@pytest.mark.parametrize(
    ("budget", "training", "epochs", "evaluations", "finalists"),
    [
        # 27 steps to train and validate: 6 + 3, 6 + 3, 6 + 3. The rest: 4 finalists, 1 each.
        ("{steps: 60}", 18, 3, 60 - 27 - 12, 4),
        ("{evaluations: 5, steps: 60}", 18, 3, 5, 4),
        # Of 20 steps, training has 18: 6 + 3 and 6 + 3. But the least of scoring is 1 + 3.
        ("{steps: 20}", 10, 2, 1, 1),
        # Of 40 steps with a half of them, 20: 6 + 3, 6 + 3, and no step of the third epoch.
        ("{steps: 40, training_share: 0.5}", 12, 2, 40 - 18 - 12, 4),
        # Of images, 0.9 x 300 = 270, less than 300 - 16 - 48 = 236: 96, 96, nothing for 8 + 48.
        ("{images: 300}", 12, 2, 1, 1),
        # 400 - 64 = 336, 0.9 x 400 = 360: all of 288 are trained; 112 are 1 and 1, not 2 and 2.
        ("{images: 400}", 18, 3, 1, 1),
        # The first step is always taken, and so is an evaluation.
        ("{images: 1}", 1, 1, 1, 1),
    ],
)
def test_exact_counts(
    images: Path,
    tmp_path: Path,
    budget: str,
    training: int,
    epochs: int,
    evaluations: int,
    finalists: int,
) -> None:
    watch, config = Steps(), bounded(images, budget)
    result = start(config, runs=tmp_path, name="run", callbacks=[watch])
    assert len(watch.steps) == training
    assert len(result.epochs) == epochs
    stages = [one.stage for one in result.evaluations]
    assert stages == ["search"] * evaluations + ["final"] * finalists
    trained = Cost(training * BATCH + epochs * HALF, training + epochs * 3)
    assert spent(tmp_path / "run") == {
        "images": trained.images,
        "steps": trained.steps,
        "over": training < 18,
    }
    whole = trained + Cost(16, 1) * evaluations + Cost(HALF, 3) * finalists
    own = config.searcher.budget
    used = [
        whole.images / own.images if own.images else 0,
        whole.steps / own.steps if own.steps else 0,
    ]
    assert result.evaluations[-1].used == pytest.approx(max(used))
    assert max(used) <= 1 or budget == "{images: 1}"
    assert any("its share of searcher.budget" in text for text in watch.messages) == (training < 18)
    assert [step.used for step in watch.steps] == sorted(step.used or 0 for step in watch.steps)


def test_recalibration_counts(images: Path) -> None:
    overrides = ["searcher.supernet.statistics=recalibrated", "searcher.supernet.calibration=2"]
    result = start(bounded(images, "{steps: 60}", *overrides), runs=None)
    evaluations = [one for one in result.evaluations if one.stage == "search"]
    assert len(evaluations) == (60 - 27 - 4 * (3 + 2)) // (1 + 2)


@pytest.mark.parametrize("at", [3, 10, 11])  # the last step, of the budget's too, is the eleventh
def test_stopped_in_training_it_goes_on_bit_for_bit(images: Path, tmp_path: Path, at: int) -> None:
    config = bounded(images, "{steps: 21}")
    watch = Steps()
    start(config, runs=tmp_path, name="whole", callbacks=[watch])
    assert len(watch.steps) == 11 < 12, "it is cut within an epoch"
    with pytest.raises(Stopped) as caught:
        start(config, runs=tmp_path, name="cut", callbacks=[Steps(at)])
    resume(folder_of(caught.value))
    assert_same_run(tmp_path / "cut", tmp_path / "whole")
    assert spent(tmp_path / "cut") == spent(tmp_path / "whole")


@pytest.mark.parametrize("at", [2, 7])
def test_stopped_in_scoring_it_goes_on_bit_for_bit(images: Path, tmp_path: Path, at: int) -> None:
    config = bounded(images, "{steps: 36, training_share: 0.5}")
    result = start(config, runs=tmp_path, name="whole")
    assert len(result.evaluations) > 7
    stop = At(at, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped):
        start(config, runs=tmp_path, name="cut", callbacks=[stop])
    resume(tmp_path / "cut")
    assert_same_run(tmp_path / "cut", tmp_path / "whole")


def test_the_cycle_in_which_it_ends_is_the_last(images: Path, tmp_path: Path) -> None:
    cycle = {"epochs": 2, "grace_epochs": 0, "morphisms": 1, "candidates": 3}
    last = {**cycle, "morphisms": 0, "candidates": 1}
    data = shared(images, "random", "darts").override(["batch.max=8"]).to_data()
    data["schedule"] = {"cycles": [cycle, cycle, last]}
    data["searcher"]["budget"] = {"evaluations": 3, "steps": 30}
    result = start(SearchConfig.from_data(data), runs=tmp_path, name="run")
    assert len(result.cycles) == 2
    assert [one.stage for one in result.evaluations] == ["search", "final"], "4 of 30 steps"


def test_seconds_are_those_of_all_sessions(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock of our own: a second for each step that was ever taken."""

    def seconds(spending: Spending) -> float:
        return float(spending.spent.steps)

    monkeypatch.setattr(Spending, "seconds", property(seconds))
    config = bounded(images, "{evaluations: 4, seconds: 16}")
    watch = Steps()
    start(config, runs=tmp_path, name="whole", callbacks=[watch])
    # 9 in the first epoch, and then until 0.9 x 16 are over.
    assert len(watch.steps) == 6 + 6
    with pytest.raises(Stopped) as caught:
        start(config, runs=tmp_path, name="cut", callbacks=[Steps(8)])
    again = Steps()
    resume(folder_of(caught.value), callbacks=[again])
    assert len(again.steps) == 4
    assert spent(tmp_path / "cut") == spent(tmp_path / "whole")
    (_, ours), (_, theirs) = (last_state(tmp_path / name) for name in ("cut", "whole"))
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())


def test_used_seconds_are_in_the_checkpoint(images: Path, tmp_path: Path) -> None:
    config = bounded(images, "{evaluations: 2, seconds: 100000}")
    with pytest.raises(Stopped) as caught:
        start(config, runs=tmp_path, name="run", callbacks=[Steps(8)])
    checkpoint, _ = Checkpoints(folder_of(caught.value) / "checkpoints", 2).newest()
    assert checkpoint is not None
    state = checkpoint.state
    before = state["elapsed"] + sum(state["so_far"]["seconds"].values())
    assert before > 0
    again = Steps()
    resume(tmp_path / "run", callbacks=[again])
    assert (again.steps[0].used or 0) * 100000 > before


def test_a_second_ends_a_long_training(images: Path) -> None:
    config = bounded(images, "{seconds: 1}", "schedule.cycles.0.epochs=100000")
    result = start(config, runs=None)
    assert 0.9 <= sum(epoch.seconds for epoch in result.epochs) < 20


def test_the_controller_counts(images: Path, tmp_path: Path) -> None:
    """Its updates have 4 batches of 16 each, and are given up when the share is used."""
    config = enas(images, "batch.max=8", "searcher.budget={steps: 40, evaluations: 2}")
    watch = Steps()
    result = start(config, runs=tmp_path, name="run", callbacks=[watch])
    # 6 + 3 in grace; 6 + 3 and 12 of 3 updates, 30 in all; the rest of 36 is less than 7 + 3.
    assert spent(tmp_path / "run")["steps"] == 36
    assert len(watch.steps) == 6 + 6 + 3
    assert [epoch.controller_score is not None for epoch in result.epochs] == [False, True, False]


def test_the_controller_is_cut(images: Path, tmp_path: Path) -> None:
    config = enas(images, "batch.max=8", "searcher.budget={steps: 26, evaluations: 1}")
    start(config, runs=tmp_path, name="run")
    # Least of scoring: 1 + 3. 18 after two epochs, one update of 4 makes 22, another would be 26.
    assert spent(tmp_path / "run")["steps"] == 22


def test_without_such_bounds_nothing_is_saved(images: Path, tmp_path: Path) -> None:
    result = start(shared(images), runs=tmp_path, name="run")
    assert "spending" not in last_state(tmp_path / "run")[0]
    assert all(one.used is None for one in result.evaluations)


def test_steps_say_how_many_batches_they_read(
    images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what they do read."""
    seen: list[int] = []
    real = Search.take_step

    def watched(search: Search) -> None:
        before = search.spending.spent.steps
        real(search)
        seen.append(search.spending.spent.steps - before)
        assert seen[-1] == search.step.num_batches

    monkeypatch.setattr(Search, "take_step", watched)
    for step in ("first-order", "second-order", "one-level", "oles", "none", "sampled"):
        scoring = "paths" if step in ("none", "sampled") else "weights"
        overrides = [f"architecture.step={step}", f"architecture.scoring={scoring}"]
        start(shared(images).override([*overrides, "searcher.budget.evaluations=1"]), runs=None)
    assert set(seen) == {1, 2}

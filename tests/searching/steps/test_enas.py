"""ENAS as a whole: a controller writes the cells that train shared weights, and learns by them."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from prnas.config import recipes
from prnas.config.search import SearchConfig
from prnas.data.dataset import load
from prnas.io.errors import FormatError
from prnas.nets.cell_paths import active_of_cells, cell_scores
from prnas.report.plots import plots_of
from prnas.report.read_run import read_view
from prnas.runs.batch_size import CpuProbe
from prnas.runs.context import RunContext
from prnas.runs.processes import Processes
from prnas.runs.record_lines import read_records
from prnas.runs.records import EpochRecord
from prnas.runs.run import Stopped
from prnas.searching import cell_accuracy
from prnas.searching.api import resume, start
from prnas.searching.cell_accuracy import BatchAccuracy
from prnas.searching.search import Search
from prnas.searching.steps.enas import EnasStep
from prnas.space.genotype import Genotype
from tests.support.shared_weights import enas
from tests.support.watching import assert_same_run, folder_of, last_state


def made(config: SearchConfig) -> Search:
    processes = Processes(config.compute)
    data = load(config.images, processes.device, lambda _: None, 1e9)
    indices = Search.prepare(config, data, 1)
    search = Search(RunContext(config, data, indices, processes, CpuProbe(None), None))
    search.state.supernet.train()
    return search


def step_of(search: Search) -> EnasStep:
    assert isinstance(search.step, EnasStep)
    return search.step


def test_a_step_trains_the_cell_that_the_controller_writes_and_nothing_else(images: Path) -> None:
    search = made(enas(images))
    cells: list[Genotype] = []
    for number in range(2):
        before = {name: value.clone() for name, value in search.state.tensors().items()}
        cells.append(step_of(search).cell("write", number))
        search.take_step()
        search.state.position.cycle_step += 1
        supernet, after = search.state.supernet, search.state.tensors()
        active = active_of_cells(supernet.pools, cells[-1])["normal"]
        assert active is not None
        inside = outside = 0
        for name, tensor in after.items():
            parts = name.split("/")[1].split(".")
            if parts[0] != "cells" or parts[2] != "operations":
                continue
            moved = name not in before or not torch.equal(before[name], tensor)
            if int(parts[4]) in active[int(parts[3])]:
                inside += moved
            else:
                assert not moved, name
                outside += 1
        assert inside > 10
        assert outside > 10
    assert cells[0] != cells[1]


def test_a_reward_is_the_accuracy_on_another_batch_and_changes_no_bit(images: Path) -> None:
    search = made(enas(images))
    step, half = step_of(search), search.indices["architecture"]
    seen: list[list[int]] = []
    fetch = search.data.train.fetch

    def watched(indices: torch.Tensor) -> torch.Tensor:
        seen.append(indices.tolist())
        return fetch(indices)

    search.data.train.fetch = watched  # pyright: ignore
    before = {name: value.clone() for name, value in search.state.tensors().items()}
    cell = step.cell("write", 7)
    numbers = [step.accuracy(cell, number) for number in range(4)]
    assert sorted(seen[0] + seen[1] + seen[2]) == sorted(half.tolist()), "48 images, 16 at a time"
    assert seen[3] not in seen[:3], "then shuffled anew"
    del search.data.train.fetch  # pyright: ignore
    for indices, number in zip(seen, numbers, strict=True):
        ((pixels, labels),) = cell_accuracy.fetched(search, [torch.tensor(indices)])
        scores = cell_scores(search.state.supernet, pixels, labels, [cell])
        assert number == float(scores.correct.double().mean())
    assert len(set(numbers)) > 1, "a score has noise"
    for name, value in search.state.tensors().items():
        assert torch.equal(value, before[name]), name


def test_the_controller_learns_after_each_epoch_but_grace_epochs(
    images: Path, tmp_path: Path
) -> None:
    result = start(enas(images), runs=tmp_path, name="run")
    grace, second, third = result.epochs
    assert grace.controller_entropy is grace.controller_score is None
    for epoch in (second, third):
        assert epoch.controller_score is not None
        assert 0 < epoch.controller_score < 1
        assert epoch.controller_entropy is not None
        assert epoch.seconds_for["architecture"] > 0
    assert second.controller_baseline != third.controller_baseline
    asked = [one for one in result.evaluations if one.stage == "search"]
    assert len(asked) == 6
    assert all(one.entropy for one in asked)
    best = max((one for one in result.evaluations if one.stage == "final"), key=lambda o: o.score)
    assert Genotype.from_json(best.genotype) == result.genotype
    state, _ = last_state(tmp_path / "run")
    learnt = state["step"]["policy"]
    assert learnt["evaluations"] == 2 * 3 * 4
    assert state["choice"]["searcher"]["controller"] == learnt["controller"], "it learns no more"
    assert learnt["adam"][0]["step"] == 2 * 3
    records = read_records(tmp_path / "run" / "records.jsonl")
    assert [one for one in records if isinstance(one, EpochRecord)] == list(result.epochs)
    drawn = {plot.id for plot in plots_of(read_view(tmp_path / "run"))}
    assert {"controller-entropy", "controller-score", "controller-baseline"} <= drawn


@pytest.mark.parametrize("update", [pytest.param("reinforce", marks=pytest.mark.slow), "ppo"])
def test_stopped_while_the_controller_learns_it_goes_on_bit_for_bit(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, update: str
) -> None:
    config = enas(images, f"searcher.controller.update={update}")
    start(config, runs=tmp_path, name="whole")
    scored, calls = BatchAccuracy.__call__, [0]

    def stopping(self: BatchAccuracy, *given: Any) -> float:
        calls[0] += 1
        if calls[0] == 12 + 6:  # in the midst of the second time that it learns
            os.kill(os.getpid(), signal.SIGTERM)
        return scored(self, *given)

    monkeypatch.setattr(BatchAccuracy, "__call__", stopping)
    with pytest.raises(Stopped) as caught:
        start(config, runs=tmp_path, name="cut")
    assert calls[0] == 12 + 8, "an update was taken to its end"
    folder = folder_of(caught.value)
    assert last_state(folder)[0]["step"]["policy"]["evaluations"] == 12, "all of it comes again"
    resume(folder)
    assert_same_run(folder, tmp_path / "whole")


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("searcher.method=random", "'enas' trains what a controller writes"),
        ("searcher.method=none", "'enas' trains what a controller writes"),
        ("architecture.scoring=weights", "step 'enas' trains no architecture weights"),
        ("architecture.relaxation=max-w", "step 'enas' trains single candidates"),
        ("evidence.curvature=1", "step 'enas' trains none"),
    ],
)
def test_what_cannot_be_is_refused(images: Path, override: str, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        enas(images, override)


def test_the_recipe_has_the_published_course_of_the_rate() -> None:
    recipe = recipes.any_recipe("enas")
    assert isinstance(recipe, SearchConfig)
    own, learner = recipe.weights, recipe.searcher.controller
    assert (own.lr, own.lr_min, own.restart_epochs, own.restart_factor) == (0.05, 0.0005, 10, 2)
    assert recipe.schedule.cycles[0].epochs == 10 + 20 + 40 + 80
    assert (own.nesterov, own.weight_decay, own.gradient_norm) == (True, 1e-4, 5)
    assert (learner.updates, learner.batch, learner.hidden, learner.lr) == (30, 10, 64, 0.0035)
    assert (learner.update, learner.entropy, learner.baseline) == ("reinforce", 1e-4, 0.99)
    config = SearchConfig.from_data({}, ["weights.warmup_epochs=0", "weights.restart_epochs=10"])
    assert config.weights.restart_factor == 2
    with pytest.raises(FormatError, match="goes without warmup_epochs"):
        SearchConfig.from_data({}, ["weights={warmup_epochs: 1, restart_epochs: 2}"])

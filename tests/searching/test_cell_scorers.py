"""Cells scored one by one, by short trainings or zero-cost proxies: ordinary runs."""

import os
import re
import signal
from pathlib import Path
from random import Random
from statistics import stdev
from types import SimpleNamespace

import pytest
import torch

from prnas.config.search import SearchConfig
from prnas.io.errors import FormatError, UserError
from prnas.report.read_run import read_view
from prnas.runs.records import EvaluationRecord
from prnas.runs.run import Stopped
from prnas.searchers.base import Proposal
from prnas.searching.api import resume, start
from prnas.searching.cell_scorers import ShortTraining, TrainingScorer
from prnas.searching.training_pool import OwnProcesses, TrainingPool
from prnas.space.genotype import Genotype
from prnas.space.network_size import network_size
from tests.support.settings import small_config
from tests.support.watching import assert_same_run, folder_of

DIGITS = {"name": "digits", "images": 100, "flip": False, "crop_padding": 1}
TRAINING = {
    "network": {"cells": 3, "channels": 4, "auxiliary_weight": 0.0, "drop_path": 0.0},
    "training": {"epochs": 2},
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Giving memory back takes longer than these trainings do."""
    monkeypatch.setattr("prnas.runs.batch_size.give_back_memory", lambda: None)


def scored(images: Path, scorer: str, method: str = "random", *overrides: str) -> SearchConfig:
    return small_config(
        images,
        space="nasbench201",
        schedule={"cycles": [{"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1}]},
        network={"cells": 3, "channels": 4, "nodes": 3, "shape": "nasbench201"},
        data=DIGITS,
        searcher={
            "method": method,
            "scorer": scorer,
            "budget": {"evaluations": 4},
            "halving": {"factor": 2, "rungs": 2},
            "evolution": {"population": 2, "sample": 1},
            "training": TRAINING,
            "proxy": {"cells": 3, "channels": 4, "images": 16},
        },
        batch={"min": 32, "multiple": 1, "max": 64},
    ).override(overrides)


def test_halving_trains_the_better_ones_longer(images: Path, tmp_path: Path) -> None:
    config = scored(images, "training", "halving", "searcher.budget.evaluations=3")
    result = start(config, runs=tmp_path, name="run")
    first, second, third = result.evaluations
    assert [one.share for one in result.evaluations] == [0.5, 0.5, None]
    assert [one.images for one in result.evaluations] == [50, 100, 200], "50 in an epoch"
    better = first if first.score >= second.score else second
    assert third.parent == better.number
    assert Genotype.from_json(third.genotype) == result.genotype
    assert third.best == third.score, "a whole training is better than any part"
    assert result.epochs == ()
    page = read_view(tmp_path / "run").data()
    assert page["without_supernet"]
    assert page["scored_by"] == "validation after a training of its own"
    assert page["searcher"]["bests"][-1] == round(third.score, 6)


def test_stopped_in_a_training_it_goes_on_bit_for_bit(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The training under way begins anew; those before it are not repeated."""
    config = scored(images, "training", "evolution")
    start(config, runs=tmp_path, name="whole")
    taken = [0]
    step = ShortTraining.take_step

    def stopping(self: ShortTraining) -> None:
        taken[0] += 1
        if taken[0] == 2 * 4 + 2:  # in the third of the trainings of 4 steps
            os.kill(os.getpid(), signal.SIGTERM)
        step(self)

    monkeypatch.setattr(ShortTraining, "take_step", stopping)
    with pytest.raises(Stopped) as caught:
        start(config, runs=tmp_path, name="cut")
    folder = folder_of(caught.value)
    taken[0] = 100
    resume(folder)
    assert taken[0] == 100 + 2 * 4
    assert_same_run(folder, tmp_path / "whole")


def test_a_score_is_the_accuracy_on_images_that_train_nothing(
    images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = TrainingScorer(scored(images, "training"), lambda _: None)
    calls: list[set[int]] = []
    fetch = scorer.data.train.fetch

    def watched(indices: torch.Tensor) -> torch.Tensor:
        calls.append(set(indices.tolist()))
        return fetch(indices)

    def refused(indices: torch.Tensor) -> torch.Tensor:
        raise AssertionError("the test part is looked at")

    monkeypatch.setattr(scorer.data.train, "fetch", watched)
    monkeypatch.setattr(scorer.data.test, "fetch", refused)
    cell = Proposal(scorer.config.cell_space.draw(Random(3)))
    first, again, other = (scorer.score(cell, number) for number in (1, 1, 2))
    assert first == again, "the same evaluation, the same score"
    assert first != other, "another one draws other weights"
    tested = set(scorer.indices["architecture"].tolist())
    assert calls.count(tested) == 3, "once in each training"
    assert all(call == tested or not call & tested for call in calls)
    assert first * 50 == pytest.approx(round(first * 50))
    scorer.close()


@pytest.mark.parametrize(("budget", "number"), [("{steps: 10}", 2), ("{images: 350}", 3)])
def test_steps_and_images_bound_it(images: Path, budget: str, number: int) -> None:
    """A training has 2 epochs of 50 images, in 2 steps each."""
    config = scored(images, "training", "random", f"searcher.budget={budget}")
    assert len(start(config, runs=None).evaluations) == number


@pytest.mark.parametrize("proxy", ["nwot", "synflow", "params", "macs"])
def test_a_proxy_is_a_score(images: Path, tmp_path: Path, proxy: str) -> None:
    config = scored(images, "proxy", "evolution", f"searcher.proxy.of={proxy}")
    result = start(config, runs=tmp_path, name="run")
    assert {one.measure for one in result.evaluations} == {proxy}
    best = max(result.evaluations, key=lambda one: one.score)
    assert Genotype.from_json(best.genotype) == result.genotype
    if proxy == "params":
        size = network_size(
            result.genotype, 4, 3, 10, output="last", input_channels=1, image_size=8
        )
        assert best.score == size.parameters
    assert read_view(tmp_path / "run").data()["searcher"]["measure"] == proxy


def test_proxies_are_recorded_beside_scores(images: Path, tmp_path: Path) -> None:
    config = scored(images, "training", "random", "searcher.proxy.record=true")
    result = start(config, runs=tmp_path, name="run")
    plain = start(scored(images, "training"), runs=None)
    assert [one.score for one in result.evaluations] == [one.score for one in plain.evaluations]
    for one in result.evaluations:
        assert one.proxies is not None
        assert list(one.proxies) == ["nwot", "synflow", "params", "macs"]
    shown = read_view(tmp_path / "run").data()["searcher"]
    assert shown["proxies"][0].keys() == {"nwot", "synflow", "params", "macs"}
    assert plain.evaluations[0].proxies is None


def test_a_proxy_that_is_minus_infinity_is_the_worst_score(
    images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prnas.searching.proxies.nwot", lambda *_: float("-inf"))
    result = start(scored(images, "proxy"), runs=None)
    assert {one.score for one in result.evaluations} == {-1000.0}


@pytest.mark.parametrize(
    ("scorer", "overrides", "words"),
    [
        ("proxy", ["searcher.method=halving"], "'halving' gives cells a share of a training"),
        ("training", ["searcher.training.network.cells=4"], "searcher.training: cells must be"),
        ("training", ["searcher.training.training.keep=best"], "that of the last epoch"),
        ("proxy", ["searcher.proxy.cells=4"], "searcher.proxy: cells must be"),
        ("table", ["searcher.proxy.record=true"], "scorer 'table' reads none"),
        ("training", ["searcher.training=retrain-quik"], "Did you mean 'retrain-quick'"),
        ("training", ["searcher.training=quick"], "no recipe for a training is called 'quick'"),
    ],
)
def test_what_cannot_be_is_refused(
    images: Path, scorer: str, overrides: list[str], words: str
) -> None:
    with pytest.raises(FormatError, match=re.escape(words)):
        scored(images, scorer, "random", *overrides)


def test_a_recipe_says_how_to_train(images: Path) -> None:
    config = scored(
        images,
        "training",
        "random",
        "searcher.training=retrain-quick",
        "searcher.training.network.cells=3",
        "searcher.training.training.epochs=2",
    )
    assert config.searcher.training.network.channels == 8
    assert config.searcher.training.network.drop_path == 0.1
    assert config.searcher.training.training.epochs == 2
    again = SearchConfig.from_data(config.to_data())
    assert again == config


def test_several_trainings_at_once_change_no_score(images: Path, tmp_path: Path) -> None:
    """Nor do repeated scores of the best, which tell how much they vary."""
    overrides = ("searcher.repeats=2", "searcher.budget.evaluations=3")
    alone = start(scored(images, "training", "random", *overrides), runs=None)
    config = scored(images, "training", "random", *overrides, "compute.devices=2")
    result = start(config, runs=tmp_path, name="two")
    assert result.genotype == alone.genotype

    def scores(evaluations: tuple[EvaluationRecord, ...]) -> list[EvaluationRecord]:
        return [record.model_copy(update={"seconds": 0.0}) for record in evaluations]

    assert scores(result.evaluations) == scores(alone.evaluations)
    *searched, again, last = result.evaluations
    assert [record.stage for record in searched] == ["search"] * 3
    assert (again.stage, last.stage, again.number, last.number) == ("repeat", "repeat", 4, 5)
    assert again.genotype == last.genotype == result.genotype.to_json()
    assert again.score != last.score, "each has a seed of its own"
    noise = read_view(tmp_path / "two").data()["searcher"]["noise"]
    best = max(record.score for record in searched)
    assert noise["cells"] == 1
    assert noise["deviation"] == pytest.approx(stdev([best, again.score, last.score]), rel=1e-3)


def test_a_lost_process_and_a_signal_end_the_waiting(images: Path) -> None:
    pool = TrainingPool(scored(images, "training", "random", "compute.devices=2"), lambda _: None)
    cell = Proposal(pool.config.cell_space.draw(Random(3)))
    try:
        pool.signals = SimpleNamespace(number=15)  # pyright: ignore[reportAttributeAccessIssue]
        with pytest.raises(Stopped):
            pool.score(cell, 1)
        pool.signals = SimpleNamespace(number=0)  # pyright: ignore[reportAttributeAccessIssue]
        pool.expect([(cell, 1)])
        assert isinstance(pool.trainers, OwnProcesses)
        (trainer,) = pool.trainers.trainers
        trainer._process.kill()
        with pytest.raises(UserError, match=r"has ended unexpectedly.*fewer"):
            pool.score(cell, 1)
    finally:
        pool.close()
    assert not trainer._process.is_alive()


@pytest.mark.parametrize("scorer", ["table", "proxy"])
def test_only_trainings_run_at_once_and_vary(images: Path, scorer: str) -> None:
    with pytest.raises(
        FormatError, match=r"takes one cell after the other.*searcher\.repeats: only"
    ):
        scored(images, scorer, "random", "compute.devices=2", "searcher.repeats=1")

"""A validation part of the training images, and the epoch that it chooses."""

import os
import signal
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import prnas
from prnas.config.retrain import RetrainConfig
from prnas.data.dataset import load, validation_split
from prnas.io.errors import UserError
from prnas.retraining.api import resume, start
from prnas.retraining.best_network import BestNetwork, mean_of_classes
from prnas.retraining.retraining import split_images
from prnas.runs.record_lines import read_records
from prnas.runs.records import Score, TrainedRecord
from prnas.runs.run import Stopped
from tests.support.settings import small_training
from tests.support.watching import Watch, assert_same_run, without_varying


@given(
    st.lists(st.integers(0, 3), min_size=2, max_size=80),
    st.floats(0.01, 0.9),
    st.integers(0, 100),
    st.data(),
)
def test_the_split_takes_of_each_class_alike(
    labels: list[int], share: float, seed: int, data: st.DataObject
) -> None:
    everything = torch.tensor(labels)
    chosen = data.draw(st.sets(st.integers(0, len(labels) - 1), min_size=2))
    indices = torch.tensor(sorted(chosen))
    counts = [int((everything[indices] == label).sum()) for label in range(4)]

    def split() -> tuple[torch.Tensor, torch.Tensor]:
        return validation_split(everything, indices, share, torch.Generator().manual_seed(seed))

    if max(counts) < 2:
        with pytest.raises(UserError, match="no class has"):
            split()
        return
    train, held_out = split()
    assert sorted([*train.tolist(), *held_out.tolist()]) == indices.tolist()
    assert train.tolist() == sorted(train.tolist())
    for label, count in enumerate(counts):
        found = int((everything[held_out] == label).sum())
        assert found == (min(max(round(count * share), 1), count - 1) if count else 0)
    again = split()
    assert torch.equal(again[0], train)


def test_the_best_is_kept() -> None:
    network, kept = torch.nn.Linear(1, 1), BestNetwork(torch.nn.Linear(1, 1))
    offers = [(0.5, 1.0), (0.7, 0.9), (0.7, 0.9), (0.7, 0.8), (0.6, 0.1)]
    for epoch, (accuracy, loss) in enumerate(offers, 1):
        torch.nn.init.constant_(network.weight, float(epoch))
        kept.offer(network, epoch, accuracy, Score(loss=loss, accuracy=accuracy, images=10))
    assert kept.epoch == 4  # the same accuracy as the second, with a smaller loss
    assert isinstance(kept.network, torch.nn.Linear)
    assert kept.network.weight.item() == 4
    other = BestNetwork(torch.nn.Linear(1, 1))
    other.load_state(kept.state())
    assert (other.epoch, other.score) == (kept.epoch, kept.score)


def test_classes_count_alike() -> None:
    assert mean_of_classes(torch.tensor([[90, 10, 0], [1, 1, 0], [0, 0, 0]])) == pytest.approx(0.7)


CHOOSING = {"epochs": 4, "warmup_epochs": 0, "lr": 0.3, "keep": "best"}


@pytest.mark.parametrize("average", [None, 0.8])
def test_what_is_kept_is_tested_and_saved(
    images: Path, tmp_path: Path, average: float | None
) -> None:
    """The model has the validation score of the best epoch, and it goes on exactly."""
    training = {**CHOOSING, "average_decay": average}
    config = small_training(images, training=training, data={"validation": 0.25})
    watch = Watch()
    result = start(config, runs=tmp_path, name="whole", callbacks=[watch])
    assert (watch.start.train_images, watch.start.validation_images) == (72, 24)
    scores = [epoch.scores["validation"] for epoch in result.epochs]
    ranks = [(score.accuracy, -score.loss) for score in scores]
    best = ranks.index(max(ranks))
    assert result.kept_epoch == best + 1
    assert result.validation == scores[best]
    assert not any("test" in epoch.scores for epoch in result.epochs)
    data = load(config.data, torch.device("cpu"))
    _, held_out = split_images(config, data)
    for model in (result.model, prnas.load(tmp_path / "whole")):
        with torch.no_grad():
            pixels = data.train.fetch(held_out).float() / 255
            right = model(pixels).argmax(1) == data.train.labels[held_out]
            wrong = model(data.test.fetch(torch.arange(12)).float() / 255).argmax(1)
        assert float(right.double().mean()) == pytest.approx(scores[best].accuracy)
        error = float((wrong != data.test.labels).double().mean())
        assert result.test_error == pytest.approx(error)
    assert result.averaged_epochs == 1
    (end,) = [
        record
        for record in read_records(tmp_path / "whole" / "records.jsonl")
        if isinstance(record, TrainedRecord)
    ]
    assert (end.kept_epoch, end.validation) == (best + 1, scores[best])
    at = 13 if average is None else 5
    stop = Watch(at, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped):
        start(config, runs=tmp_path, name="stopped", callbacks=[stop])
    resume(tmp_path / "stopped")
    assert_same_run(tmp_path / "stopped", tmp_path / "whole")


def test_with_validation_alone_the_last_weights_stay(images: Path, tmp_path: Path) -> None:
    """Keeping the best instead changes none of the epochs."""
    short = {"epochs": 2, "warmup_epochs": 0, "lr": 0.3}
    config = small_training(images, training=short, data={"validation": 0.25})
    last = start(config, runs=tmp_path)
    best = start(config.override(["training.keep=best"]), runs=tmp_path)
    assert last.kept_epoch is None
    assert last.validation == last.epochs[-1].scores["validation"]
    assert "test" in last.epochs[-1].scores
    for one, other in zip(last.epochs, best.epochs, strict=True):
        ours, theirs = without_varying(one), without_varying(other)
        del ours["test"], theirs["test"]
        assert ours == theirs


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ValueError, match=r"set data\.validation to a share"):
        RetrainConfig.from_data({"training": {"keep": "best"}})
    with pytest.raises(ValueError, match="validation"):
        RetrainConfig.from_data({"data": {"validation": 1.0}})

"""Trainings that start with the weights of a model that was trained before."""

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

import prnas
from prnas.io.errors import UserError
from prnas.models.model import load
from prnas.retraining.api import resume, start
from prnas.runs.record_lines import read_records
from prnas.runs.records import TrainedRecord
from prnas.runs.run import Stopped
from tests.support.in_process import Cli
from tests.support.settings import small_training, write_images
from tests.support.watching import Watch, assert_same_run, folder_of


@pytest.fixture(scope="module")
def trained(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of three classes, trained with an auxiliary head."""
    config = small_training(images, training={"epochs": 2})
    return folder_of(start(config, runs=tmp_path_factory.mktemp("trained")))


def weights(path: Path) -> dict[str, torch.Tensor]:
    return dict(load(path).network.state_dict())


def test_it_starts_where_the_other_ended(images: Path, trained: Path) -> None:
    """A step without a learning rate to speak of, on the same classes: hardly anything moves."""
    still = {"epochs": 1, "warmup_epochs": 0, "lr": 1e-12, "weight_decay": 0.0}
    config = small_training(images, training=still)
    begun = config.model_copy(
        update={"network": config.network.model_copy(update={"start_from": str(trained)})}
    )
    watch = Watch()
    found = start(begun, runs=None, callbacks=[watch]).model.network.state_dict()
    known, fresh = weights(trained), start(config, runs=None).model.network.state_dict()
    names = [name for name in known if "running" not in name and known[name].is_floating_point()]
    assert all(torch.allclose(found[name], known[name], atol=1e-9) for name in names)
    assert not torch.allclose(fresh["classifier.weight"], known["classifier.weight"], atol=1e-3)
    (note,) = watch.start.notes
    assert note == f"starts with the weights of {trained}; new: auxiliary"


def test_other_classes_get_a_new_classifier_and_it_goes_on_exactly(
    trained: Path, tmp_path: Path
) -> None:
    """Also when the model it began with is gone by then."""
    data = write_images(tmp_path / "four.npz", classes=4)
    model = tmp_path / "model"
    prnas.export(trained, model)
    config = small_training(data, network={"start_from": str(model)}, training={"epochs": 2})
    start(config, runs=tmp_path, name="whole")
    stop = Watch(7, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped):
        start(config, runs=tmp_path, name="stopped", callbacks=[stop])
    shutil.rmtree(model)
    watch = Watch()
    resume(tmp_path / "stopped", callbacks=[watch])
    assert "new: classifier and auxiliary" in watch.start.notes[0]
    assert_same_run(tmp_path / "stopped", tmp_path / "whole")
    (end,) = [
        record
        for record in read_records(tmp_path / "whole" / "records.jsonl")
        if isinstance(record, TrainedRecord)
    ]
    assert end.started_from is not None
    assert end.started_from.new == ["classifier", "auxiliary"]
    card = load(tmp_path / "whole").card
    assert card.num_classes == 4
    assert card.results["started_from"] == end.started_from.model_dump()
    fresh = small_training(data, training={"epochs": 2})
    other = start(fresh, runs=None).model.network.state_dict()
    assert not torch.equal(
        other["stem.conv.weight"], weights(tmp_path / "whole")["stem.conv.weight"]
    )


def test_what_does_not_fit_is_told_before_anything_is_written(
    images: Path, trained: Path, tmp_path: Path
) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"genotype": "darts-v1"}, "its cells are others"),
        ({"network": {"channels": 6}}, r"network.channels 4, this training 6"),
        ({"network": {"output": "mean"}}, r"network.output concat, this training mean"),
        ({"data": {"name": "digits"}}, "images of 3 channels, digits has those of 1"),
    ]
    for changes, said in cases:
        network = {**changes.get("network", {}), "start_from": str(trained)}
        config = small_training(images, **(changes | {"network": network}))
        with pytest.raises(UserError, match=said):
            start(config, runs=tmp_path / "runs")
    config = small_training(images, network={"start_from": str(tmp_path)})
    with pytest.raises(UserError, match="is not a trained model"):
        start(config, runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_by_the_command(images: Path, trained: Path, here: Cli) -> None:
    """Cells and size are those of the model, whatever the recipe says."""
    retrain, model = here.command("retrain"), str(trained)
    options = ["--quiet", "--threads", "1", "--data", f"npz:{images}"]
    options += ["--set", "training.epochs=1", "--set", "data.image_size=8"]
    retrain.good("retrain-pictures", "--from", model, "--name", "one", *options)
    card, known = load("runs/one").card, load(trained).card
    assert (card.genotype, card.channels, card.cells) == (known.genotype, 4, 3)
    assert card.config["network"]["start_from"] == model
    said = retrain.bad("darts-v1", "--from", model, "--name", "two", *options)
    assert "its cells are others than those to train" in said
    assert "--from" in retrain.bad("--resume", "runs/one", "--from", model)
    assert not Path("runs/two").exists()


def test_from_python(images: Path, trained: Path) -> None:
    small = small_training(images, training={"epochs": 1, "warmup_epochs": 0}, network={"cells": 5})
    result = prnas.retrain(trained, small, start_from=trained)
    assert result.model.card.cells == 3

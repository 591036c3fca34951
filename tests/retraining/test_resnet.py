"""A plain network in the place of cells: trained, resumed, tested, exported, reported."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

import prnas
from prnas.config.retrain import RetrainConfig
from prnas.io.errors import UserError
from prnas.models.card import ModelCard
from prnas.retraining.api import resume, start
from prnas.runs.named import genotype_and_data
from prnas.runs.run import Stopped
from tests.support.in_process import Cli
from tests.support.settings import small_training
from tests.support.watching import Watch, assert_same_run

PLAIN = {"kind": "resnet", "cells": 3, "channels": 4, "drop_path": 0.0, "auxiliary_weight": 0.0}


def plain_training(images: Path, **changes: Any) -> RetrainConfig:
    return small_training(images, genotype=None, network=PLAIN, **changes)


def test_by_the_commands(images: Path, here: Cli, tmp_path: Path) -> None:
    """All that can be done with a trained model."""
    options = ["--quiet", "--threads", "1", "--data", f"npz:{images}", "--name", "plain"]
    options += ["--set", "network.channels=4", "--set", "training.epochs=1"]
    here.good("retrain", "resnet8", "retrain-quick", *options)
    model = prnas.load("runs/plain")
    assert (model.card.kind, model.card.genotype, model.card.cells) == ("resnet", None, 3)
    told = json.loads(here.good("evaluate", "runs/plain", "--json", "--skip-speed"))
    assert told["images"] == 12
    assert told["top1"] == pytest.approx(1 - model.card.results["test_error"])
    for name in ("net.py", "net.onnx"):
        assert "checked" in here.good("export", "runs/plain", "-o", name)
    source = (tmp_path / "net.py").read_text()
    assert "class Network(ResNet)" in source
    assert "nothing was\nsearched" in source or "nothing was searched" in source
    assert "plain ResNet: 3 blocks, 4 channels" in (tmp_path / "runs/plain/report.html").read_text()
    repeat = ["runs/plain", "runs/plain/config.yaml", "--quiet", "--name", "again"]
    here.good("retrain", *repeat)
    one, other = (
        (tmp_path / "runs" / name / "model/model.safetensors").read_bytes()
        for name in ("plain", "again")
    )
    assert one == other
    here.good("report", "runs/plain", "runs/again")
    assert "which has no cells" in here.bad("draw", "runs/plain")
    assert "6 n + 2 layers" in here.bad("retrain", "resnet18")


def test_it_goes_on_exactly(images: Path, tmp_path: Path) -> None:
    config = plain_training(images, training={"epochs": 2}, data={"validation": 0.2})
    start(config, runs=tmp_path, name="whole")
    stop = Watch(5, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped):
        start(config, runs=tmp_path, name="stopped", callbacks=[stop])
    resume(tmp_path / "stopped")
    assert_same_run(tmp_path / "stopped", tmp_path / "whole")
    with pytest.raises(UserError, match="plain ResNet"):
        genotype_and_data(str(tmp_path / "whole"))
    begun = prnas.retrain("resnet8", config, start_from=tmp_path / "whole")
    assert begun.model.card.results["started_from"]["new"] == []
    with pytest.raises(UserError, match=r"network.kind resnet, this training cells"):
        start(small_training(images, network={"start_from": str(tmp_path / "whole")}), runs=None)


def test_from_python_with_sizes_chosen_by_the_images(images: Path) -> None:
    config = RetrainConfig.draft(
        {"network": {**PLAIN, "cells": "auto", "channels": "auto"}, "training": {"epochs": 1}}
        | {"data": {"name": f"npz:{images}"}, "batch": {"min": 20, "max": 20}}
    )
    assert config.config.genotype is None
    assert config.open == ("network.cells", "network.channels")
    from prnas.runs.named import settle

    chosen = settle(config).config.network
    assert chosen.cells % 3 == 0


def test_settings_that_cannot_work_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"network": {**PLAIN, "cells": 4}}, "multiple of 3"),
        ({"network": {**PLAIN, "drop_path": 0.1}}, "drop_path must be 0.0 in a ResNet"),
        ({"network": {"kind": "resnet", "cells": 3}}, "auxiliary_weight must be 0.0"),
        ({"network": PLAIN, "genotype": "darts-v1"}, "genotype must be null"),
        ({"genotype": None}, "name a genotype"),
        ({"network": {"kind": "vgg"}}, "kind"),
    ]
    for wrong, said in cases:
        with pytest.raises(ValueError, match=said):
            RetrainConfig.from_data(wrong)


def test_a_card_of_cells_is_written_as_before() -> None:
    sizes: dict[str, Any] = {"channels": 4, "cells": 3, "input_shape": (1, 8, 8)}
    rest = {"class_names": ("a", "b"), "mean": (0.5,), "std": (0.5,)}
    cells = ModelCard(genotype=prnas.zoo.get("darts-v1"), **sizes, **rest)  # pyright: ignore
    assert "kind" not in json.loads(cells.dumps("0" * 64))
    plain = ModelCard(kind="resnet", genotype=None, **sizes, **rest)  # pyright: ignore
    assert ModelCard.loads(plain.dumps("0" * 64))[0] == plain
    with pytest.raises(ValueError, match="a resnet has none"):
        ModelCard(kind="resnet", genotype=cells.genotype, **sizes, **rest)  # pyright: ignore

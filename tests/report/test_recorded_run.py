"""Runs on disk as values, and what notebooks show of them and of results."""

import shutil
from pathlib import Path

import pytest

import prnas
from prnas.io.errors import UserError
from prnas.space.genotype import Genotype
from tests.support.settings import small_training


def test_a_search(reference: Path, tmp_path: Path) -> None:
    run = prnas.read_run(reference)
    assert (run.task, run.config["seed"]) == ("search", 1)
    assert run.genotype == Genotype.loads((reference / "genotype.json").read_text())
    assert (len(run.epochs), len(run.cycles)) == (5, 3)
    assert run.validation_accuracy == run.epochs[-1].scores["validation"].accuracy
    rows = list(run.rows())
    assert [row["total_epoch"] for row in rows] == [1, 2, 3, 4, 5]
    assert [row["grace"] for row in rows] == [True, False, True, False, False]
    assert "architecture_accuracy" not in rows[0]
    assert rows[1]["architecture_accuracy"] == run.epochs[1].scores["architecture"].accuracy
    assert repr(run).startswith("<RecordedRun, search: data npz:")
    assert "\n" not in repr(run)
    shown = run._repr_html_()
    assert f"{100 * (run.validation_accuracy or 0):.2f} %" in shown
    assert shown.count("<svg") == 1
    unfinished = tmp_path / "<i>unfinished"
    shutil.copytree(reference, unfinished)
    (unfinished / "genotype.json").unlink()
    begun = prnas.read_run(unfinished)
    assert begun.genotype is None
    assert "<i>" not in begun._repr_html_()
    assert "<svg" not in begun._repr_html_()


def test_what_is_no_run(reference: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run's folder"):
        prnas.read_run(tmp_path)
    shutil.copytree(reference, tmp_path / "seed-0")
    with pytest.raises(UserError, match="holds several runs; read one of them: seed-0"):
        prnas.read_run(tmp_path)


def test_a_training_and_its_result(images: Path, tmp_path: Path) -> None:
    config = small_training(images, training={"epochs": 1, "warmup_epochs": 0})
    result = prnas.retrain("darts-v1", config, runs=tmp_path, name="one")
    run = prnas.read_run(tmp_path / "one")
    assert (run.task, run.test_error) == ("retrain", result.test_error)
    assert run.genotype == prnas.zoo.get("darts-v1")
    assert list(run.rows()) == result.rows()
    assert repr(result).startswith(f"<RetrainResult: data npz:{images}, seed 1, test error ")
    assert result._repr_html_().count("<svg") == 1
    assert f"{result.parameters:,}" in result._repr_html_()


def test_cells_are_trained_on_the_images_they_were_found_on(
    reference: Path, images: Path, tmp_path: Path
) -> None:
    """As `prnas retrain RUN` does, and of the size that the search has told."""
    few = ["training.epochs=1"]
    trained = prnas.retrain(reference, overrides=few, runs=tmp_path, name="one")
    assert trained.config is not None
    assert trained.config.data.name == f"npz:{images}"
    (found,) = [record for record in prnas.read_run(reference).records if record.type == "genotype"]
    assert found.next is not None
    assert (found.next.parameters, found.next.macs) == (trained.parameters, trained.macs)
    assert found.next.classes == 3
    other = prnas.retrain(reference, data="digits", overrides=[*few, "data.images=64"])
    assert other.config is not None
    assert (other.config.data.name, other.model.card.num_classes) == ("digits", 10)

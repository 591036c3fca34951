"""The training by real processes: its words, killed, interrupted, two at once."""

import json
import shlex
import signal
from pathlib import Path

import pytest
import torch

from prnas.models.model import load
from prnas.retraining.api import start
from prnas.runs.record_lines import read_records
from prnas.runs.records import EpochRecord
from tests.support.in_process import Cli
from tests.support.pages import data_of
from tests.support.real_processes import good, killed_and_resumed, stopped_by, write_config
from tests.support.settings import small_training
from tests.support.watching import assert_same_run, folder_of


@pytest.fixture(scope="module")
def recipe(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = small_training(images, checkpoints={"every_minutes": 1e-6})
    return write_config(config, tmp_path_factory.mktemp("recipe"))


@pytest.fixture(scope="module")
def reference(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = small_training(images, genotype="pr-darts-dl1", checkpoints={"every_minutes": 1e-6})
    return folder_of(start(config, runs=tmp_path_factory.mktemp("reference")))


@pytest.mark.slow  # a short `torture.kills` runs with the others
def test_killed_at_random_moments_it_ends_the_same(
    recipe: Path, tmp_path: Path, reference: Path
) -> None:
    run = tmp_path / "runs" / "run"
    arguments = ("retrain", "pr-darts-dl1", recipe, "--name", "run")
    out = killed_and_resumed(*arguments, run=run, kills=2, checkpoints=6, seed=3, cwd=tmp_path)
    assert_same_run(run, reference)
    assert "test error" in out
    assert f"next: prnas evaluate {run}" in out
    page = (run / "report.html").read_text(encoding="utf-8")
    (told,) = data_of(page)["runs"]
    assert told["ended"]


@pytest.mark.slow  # the same loop as a search's, whose signals are among the others
def test_a_signal_saves_and_says_how_to_go_on(
    recipe: Path, tmp_path: Path, reference: Path
) -> None:
    run = tmp_path / "runs" / "run"
    arguments = ("retrain", "pr-darts-dl1", recipe, "--name", "run")
    out = stopped_by(signal.SIGTERM, *arguments, run=run, cwd=tmp_path)
    assert f"prnas retrain --resume {run.relative_to(tmp_path)}" in out
    good("retrain", "--resume", run, cwd=tmp_path)
    assert_same_run(run, reference)


@pytest.mark.slow
def test_two_processes_train_one_model(images: Path, tmp_path: Path) -> None:
    """Two seeds in two processes: Fabric launches them once."""
    config = small_training(
        images, batch={"min": 8, "multiple": 1, "max": 8}, training={"epochs": 2}
    )
    path = write_config(config, tmp_path)
    arguments = ("retrain", "pr-darts-dl1", path, "--name", "run", "--seeds", "2")
    out = good(*arguments, "--devices", "2", "--accelerator", "cpu", cwd=tmp_path)
    group = tmp_path / "runs" / "run"
    assert sorted(one.name for one in (tmp_path / "runs").iterdir()) == ["run"]  # only one writes
    assert out.count("over 2 seeds") == 1  # and only one speaks
    results = json.loads((group / "results.json").read_text())
    assert [one["seed"] for one in results["runs"]] == [1, 2]
    # All seeds in one page, whose command repeats them.
    assert "report.html" in out
    page = data_of((group / "report.html").read_text(encoding="utf-8"))
    assert page["title"] == "run"
    assert [run["ended"] for run in page["runs"]] == [True, True]
    again = shlex.split(dict(page["head"]["commands"])["Repeat it with all seeds"])
    good(*again[1:], "--name", "again", "--devices", "1", cwd=tmp_path)
    repeated = json.loads((tmp_path / "runs" / "again" / "group.json").read_text())
    assert repeated == json.loads((group / "group.json").read_text())
    records = [
        one
        for one in read_records(group / "seed-1" / "records.jsonl")
        if isinstance(one, EpochRecord)
    ]
    # As many images as one process with twice the batch would see, and a test of all images.
    assert [one.batch for one in records] == [16, 16]
    assert [one.scores["test"].images for one in records] == [12, 12]
    alone = start(
        small_training(
            images,
            genotype="pr-darts-dl1",
            batch={"min": 16, "max": 16},
            training={"epochs": 2},
        ),
        runs=None,
    )
    # Batch normalisation sees other images: close, not equal.
    ours, theirs = (epochs[0].scores["training"].loss for epochs in (records, alone.epochs))
    assert ours == pytest.approx(theirs, rel=0.2)
    model = load(group / "seed-1")
    assert all(bool(torch.isfinite(one).all()) for one in model.network.parameters())


MISTAKES = [
    ([], "say what to train"),
    (["nope"], "no published cell and no file is called 'nope'"),
    (["pr-darts-dl1", "quick"], "'quick' is a recipe for search; recipes for retrain: "),
    (["pr-darts-dl1", "retrain-quik"], "Did you mean 'retrain-quick'?"),
    (["pr-darts-dl1", "--seeds", "0"], "--seeds: must be 1 or more"),
    (["pr-darts-dl1", "--set", "training.epoch=1"], "Did you mean 'epochs'?"),
    (["pr-darts-dl1", "--name", "a/b"], "--name is a folder's name"),
    (["pr-darts-dl1", "--data", "cifar11"], "cifar11"),
    (["--resume", "nowhere"], "there is no run folder nowhere"),
    (["pr-darts-dl1", "--resume", "."], "leave out the genotype 'pr-darts-dl1'"),
    (["."], "is not a run's folder"),
]


@pytest.mark.parametrize(("arguments", "said"), MISTAKES, ids=lambda one: " ".join(one)[:40])
def test_mistakes(here: Cli, arguments: list[str], said: str, tmp_path: Path) -> None:
    assert said in here.bad("retrain", *arguments)
    assert not (tmp_path / "runs").exists()

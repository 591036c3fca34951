"""Images of one's own, from the folder to the trained network: what the commands choose and say."""

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

import prnas
from prnas.config import recipes
from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.data.catalog import ABOUT
from prnas.runs.events import Callback, RunStart
from prnas.runs.named import default_search, default_training
from prnas.runs.names import RECORDS
from prnas.runs.record_lines import read_records
from prnas.runs.records import GenotypeRecord
from prnas.space import zoo
from prnas.space.nasbench201.cells import genotype_of
from tests.support.command_line import bad, good, modules_after
from tests.support.in_process import Cli
from tests.support.made_data import picture_folder
from tests.support.real_processes import stopped_by
from tests.support.watching import assert_same_run

# Small enough for a test; all else is chosen.
CYCLE = "{epochs: 1, grace_epochs: 0, morphisms: 0, candidates: 1}"
SMALL = (
    "--set",
    f"schedule.cycles=[{CYCLE}]",
    "--set",
    "network={cells: 3, channels: 2, nodes: 2}",
)
SMALL += ("--threads", "1", "--set", "data.image_size=8")
TRAINING = ("--set", "training.epochs=1", "--set", "network.cells=3", "--set", "network.channels=2")
TRAINING += ("--threads", "1", "--set", "data.image_size=8")
HOSTILE = "my \x1b[31mpics: [auto] {é} #1 'q' \"d\" =x"


def config_of_run(run: Path) -> dict[str, Any]:
    return yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return f"folder:{picture_folder(tmp_path / HOSTILE, 12).name}"


def test_a_search_says_what_it_chose_and_a_training_follows(folder: str, tmp_path: Path) -> None:
    out = good("search", "--data", folder, *SMALL, "--name", "found", cwd=tmp_path)
    assert "images    20 training images of 2 classes (10 each), colour, short side 30 pix" in out
    assert "batch     8 images, 1 step an epoch" in out
    assert "augment   flipped, shifted by up to 1: as photos" in out
    assert "note      20 images are few" in out
    assert "\x1b" not in out
    run = tmp_path / "runs" / "found"
    data = config_of_run(run)["data"]
    assert (data["name"], data["flip"], data["crop_padding"]) == (folder, True, 1)
    assert SearchConfig.from_data(config_of_run(run)).batch.max == 8  # it says `auto` nowhere
    # The written config repeats the search, and looks at nothing.
    again = good("search", "runs/found/config.yaml", "--name", "again", cwd=tmp_path)
    assert "augment" not in again
    assert_same_run(tmp_path / "runs" / "again", run)
    trained = good("retrain", "runs/found", *TRAINING, "--name", "trained", cwd=tmp_path)
    assert "augment   flipped, shifted by up to 1, a square of 2 cut out: as photos" in trained
    data = config_of_run(tmp_path / "runs" / "trained")["data"]
    assert (data["name"], data["flip"], data["cutout"]) == (folder, True, 2)


def test_a_training_follows_a_search_on_a_set_with_a_name(tmp_path: Path) -> None:
    """Its cells are of residual networks, which the usual training of the digits cannot hold."""
    few = ("--set", "data.images=80", "--threads", "1")
    one = ("--set", f"schedule.cycles=[{CYCLE}]", "--set", "network.channels=2")
    good("search", "pictures", "--data", "digits", *one, *few, "--name", "found", cwd=tmp_path)
    run = tmp_path / "runs" / "found"
    (ended,) = [line for line in read_records(run / RECORDS) if isinstance(line, GenotypeRecord)]
    assert ended.next is not None
    assert ended.next.cells % 3 == 0
    quick = ("--set", "training.epochs=1", "--threads", "1")
    good("retrain", "runs/found", *quick, "--name", "trained", cwd=tmp_path)
    config = config_of_run(tmp_path / "runs" / "trained")
    assert config["data"]["name"] == "digits"
    assert config["network"]["cells"] == ended.next.cells


def test_a_stopped_search_goes_on_without_another_look(folder: str, tmp_path: Path) -> None:
    cycles = f"schedule.cycles=[{CYCLE.replace('epochs: 1,', 'epochs: 4,', 1)}]"
    arguments = ("search", "pictures", "--data", folder, *SMALL, "--set", cycles)
    good(*arguments, "--name", "whole", cwd=tmp_path)
    run = tmp_path / "runs" / "run"
    stopped_by(signal.SIGTERM, *arguments, "--name", "run", run=run, cwd=tmp_path)
    out = good("search", "--resume", str(run), cwd=tmp_path)
    assert "augment" not in out
    assert_same_run(run, tmp_path / "runs" / "whole")


def test_the_config_that_would_be_searched_with(folder: str, here: Cli, tmp_path: Path) -> None:
    printed = here.good("config", "pictures", "--data", folder)
    assert "# size      24 x 24 pixels: the next below" not in printed  # all are 40 x 30
    assert "# size      30 x 30 pixels: their own size" in printed
    config = SearchConfig.from_data(yaml.safe_load(printed))
    assert (config.data.image_size, config.data.name) == (30, folder)
    (tmp_path / "own.yaml").write_text(printed, encoding="utf-8")
    assert yaml.safe_load(here.good("config", "own.yaml")) == config.to_data()
    told = here.good(
        "config", "pictures", "--data", folder, "--set", "data.image_size=16", "--json"
    )
    assert json.loads(told)["data"]["image_size"] == 16
    training = json.loads(here.good("config", "retrain-pictures", "--data", folder, "--json"))
    assert RetrainConfig.from_data(training).data.cutout == 7
    assert not modules_after("config", "pictures", "--data", "digits") & {"torch"}


def test_recipes_are_listed_with_what_they_leave_open(here: Cli) -> None:
    line = next(one for one in here.good("recipes").splitlines() if one.startswith("pictures"))
    assert line.split()[1:4] == ["any", "2", "auto"]
    assert json.loads(here.good("recipes", "pictures", "--json"))["network"]["cells"] == "auto"
    assert here.good("recipes", "pictures") == recipes.text("pictures")


def test_mistakes(here: Cli, folder: str, tmp_path: Path) -> None:
    for arguments, said in (
        (["search", "pictures"], "folder:pictures: there is no such folder. Say which images are"),
        (["search", "pictures", "--data", folder, "--set", "network.cels=3"], "mean 'cells'?"),
        (["search", "--data", "fold:x"], "no set of images is called 'fold:x'"),
        (["config", "pictures", "--data", "folder:x"], "there is no such folder"),
        (["data", folder, "--recipe", "picturs"], "Did you mean 'pictures'?"),
        (["data", folder, "--recipe", "."], "config.yaml"),
        (["data", folder, "--set", "data.flop=1"], "Did you mean 'flip'?"),
        (["retrain", "darts-v2", "--data", "folder:x"], "there is no such folder"),
    ):
        assert said in here.bad(*arguments)
    assert [path.name for path in tmp_path.iterdir()] == [HOSTILE]
    shutil.rmtree(tmp_path / HOSTILE)
    (tmp_path / HOSTILE / "a").mkdir(parents=True)
    (tmp_path / HOSTILE / "b").mkdir()
    said = bad("search", "--data", folder, cwd=tmp_path)
    assert "holds no image files" in said
    assert "\x1b" not in said


def test_samples_are_treated_as_the_search_would(folder: str, here: Cli, tmp_path: Path) -> None:
    picture_folder(tmp_path / "grey", 10, mode="L")

    def told(*arguments: str) -> tuple[object, ...]:
        summary = json.loads(here.good("data", *arguments, "--json"))
        how = summary["augmentation"]
        size = summary["shape"][1]
        return summary["recipe"], size, how["flip"], how["crop_padding"], how["cutout"]

    assert told(folder) == ("pictures", 30, True, 3, 0)
    assert told("folder:grey") == ("pictures", 30, False, 3, 0)
    assert told("digits") == ("quick", 8, False, 1, 0)
    assert told(folder, "--recipe", "retrain-pictures") == ("retrain-pictures", 30, True, 3, 7)
    assert told(folder, "--recipe", "quick") == ("quick", 32, False, 1, 0)
    assert told(folder, "--recipe", "darts-like", "--no-flip")[1:] == (32, False, 4, 0)
    assert told(folder, "--set", "data.crop_padding=2", "--cutout", "5") == (
        *("pictures", 30, True, 2, 5),
    )
    here.good("data", folder, "--sample", "plain.png")
    here.good("data", folder, "--sample", "same.png", "--recipe", "pictures")
    here.good("data", folder, "--sample", "other.png", "--recipe", "quick")
    plain = (tmp_path / "plain.png").read_bytes()
    assert plain == (tmp_path / "same.png").read_bytes()
    assert plain != (tmp_path / "other.png").read_bytes()
    config = SearchConfig.from_data({}, ["data.image_size=12", "data.crop_padding=5"])
    run = tmp_path / "run"
    run.mkdir()
    data = config.to_data()
    data["data"]["name"] = folder
    (run / "config.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
    assert told("--recipe", "run") == ("run", 12, True, 5, 0)
    assert told("folder:grey", "--recipe", "run")[1:4] == (12, True, 5)


def test_a_recipe_that_is_not_for_these_images_says_so(folder: str, tmp_path: Path) -> None:
    out = good("search", "quick", "--data", folder, *SMALL, "--set", "batch.min=8", cwd=tmp_path)
    assert "note      quick is made for digits: images are not flipped" in out


def test_default_recipes() -> None:
    assert {name: default_search(name) for name in ABOUT} == {
        name: "quick" if name == "digits" else "pictures" for name in ABOUT
    }
    assert default_search(None) == "quick"
    assert default_search("folder:digits") == "pictures"
    assert default_training("npz:x.npz") == default_training("folder:x") == "retrain-pictures"
    assert default_training("cifar10") == default_training(None) == "retrain-quick"
    residual, darts = genotype_of(0), zoo.get("darts-v2")
    assert {default_training(data, residual) for data in ("cifar10", None)} == {"retrain-pictures"}
    assert {default_training(data, darts) for data in ("cifar10", None)} == {"retrain-quick"}


def test_the_same_in_python_and_in_a_study(folder: str, here: Cli, tmp_path: Path) -> None:
    class Ears(Callback):
        def on_start(self, start: RunStart) -> None:
            self.start = start

    ears = Ears()
    overrides = [word for word in SMALL if "=" in word] + [f"data.name={json.dumps(folder)}"]
    prnas.search("pictures", overrides=overrides, callbacks=[ears])
    assert dict(ears.start.reasons)["augment"].startswith("flipped")
    assert ears.start.config.data.crop_padding == 1
    study = {
        "rows": [{"name": "mine", "search": "pictures"}],
        "data": {"name": folder},
        "retrain": "retrain-pictures",
    }
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    jobs = json.loads(here.good("study", "study.yaml", "--list", "--json"))
    assert jobs
    study["data"] = {"name": "folder:none"}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    assert "row 'mine': folder:none: there is no such folder" in here.bad("study", "study.yaml")

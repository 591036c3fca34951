"""A whole fit on tiny images: its stages, its end, and going on after it was stopped."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import prnas
from prnas.fitting import fit
from prnas.fitting.events import Listener
from prnas.fitting.folder import read_state
from prnas.fitting.names import CARD, PAGE, RESULTS
from prnas.io.errors import UserError
from prnas.models.predict import predict
from prnas.runs.events import Callback
from prnas.runs.records import EpochRecord
from prnas.runs.run import Stopped
from tests.support.made_fits import IMAGES, NAMES, SaidMeter, made_folder
from tests.support.settings import write_images


@pytest.fixture(scope="module", autouse=True)
def only_runs() -> Any:
    """Exports and reports of runs are tested by themselves, and take their time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "with_default_callbacks", list)
        patch.setattr(fit, "write_exports", lambda model, folder, say: {"net.py": ()})
        yield


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_images(tmp_path_factory.mktemp("data") / "few.npz", IMAGES)


@pytest.fixture(scope="module")
def whole(few: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fit that was never stopped."""
    folder = made_folder(few, tmp_path_factory.mktemp("runs"), "whole")
    fit.resume(folder, meter=SaidMeter())
    return folder


def results_in(folder: Path) -> dict[str, Any]:
    results = json.loads((folder / RESULTS).read_text())
    for one in results["networks"]:
        del one["seconds"]
    del results["checksum"]
    return results


def test_it_leaves_runs_results_and_a_model(whole: Path) -> None:
    results = results_in(whole)
    assert [one["name"] for one in results["networks"]] == list(NAMES)
    assert {one["images"] for one in results["networks"]} == {12}
    assert len({one["validation_images"] for one in results["networks"]}) == 1
    assert all((whole / name / "records.jsonl").is_file() for name in ("search", *NAMES))
    best = max(results["networks"], key=lambda one: (one["validation"], -one["validation_loss"]))
    assert results["best"] == best["name"]
    model = prnas.load(whole)
    theirs = prnas.load(whole / results["best"]).network.state_dict()
    assert all(weight.equal(theirs[name]) for name, weight in model.network.state_dict().items())
    assert sum(map(sum, results["confusion"])) == 12
    assert len(results["wrong"]) == 12 - best["correct"]
    assert sum(one["images"] for one in results["calibration"]["bins"]) == 12
    assert "right on" in results["sentences"][0]


def test_epochs_follow_from_the_time_that_was_left(whole: Path) -> None:
    trainings = read_state(whole).trainings
    assert trainings is not None
    # 57 s of 60, without 11 s before and 20 s after; each of three has 8.67 s, for epochs of 31
    # images in batches of 8.
    assert trainings.left == pytest.approx(26.0)
    epochs = {name: one["training"]["epochs"] for name, one in trainings.configs.items()}
    assert set(epochs.values()) == {5}
    assert all(one["training"]["keep"] == "best" for one in trainings.configs.values())
    assert len({one["data"]["validation"] for one in trainings.configs.values()}) == 1


def test_card_and_page_are_there_and_escape_names(whole: Path) -> None:
    card, page = ((whole / name).read_text() for name in (CARD, PAGE))
    assert "## What it was not tested for" in card
    assert "8 x 8" in card
    assert "<b>3</b>" not in card.replace("\\<", "")
    assert "36 images &amp; &lt;b&gt;3&lt;/b&gt; classes." in page
    assert "<script" not in page


class Ends(Listener):
    """Ends the process, as it were, when a stage begins; or sends it a signal, as Ctrl-C does."""

    def __init__(self, stage: str, number: int | None = None) -> None:
        self.stage, self.signal = stage, number
        self.said: list[str] = []

    def on_stage(self, name: str, number: int, of: int) -> None:
        if name == self.stage:
            if self.signal is None:
                raise InterruptedError
            os.kill(os.getpid(), self.signal)

    def on_message(self, text: str) -> None:
        self.said.append(text)


def test_stopped_between_its_parts_it_ends_the_same(whole: Path, few: Path, tmp_path: Path) -> None:
    folder = made_folder(few, tmp_path, "stopped")
    with pytest.raises(InterruptedError):
        fit.resume(folder, meter=SaidMeter(), listener=Ends("found"))
    ends = Ends("plain", signal.SIGINT)
    with pytest.raises(Stopped) as stopped:
        fit.resume(folder, meter=SaidMeter(False), listener=ends)
    assert (stopped.value.folder, stopped.value.number) == (folder, signal.SIGINT)
    assert "the best network so far" in ends.said[0]
    so_far = (folder / "model" / "model.safetensors").read_bytes()
    both = {name: folder / name / "model" / "model.safetensors" for name in ("found", "zoo")}
    assert so_far in {path.read_bytes() for path in both.values()}
    results = fit.resume(folder, meter=SaidMeter(False))
    assert results_in(folder) == results_in(whole)
    assert read_state(folder) == read_state(whole)
    for name in NAMES:
        files = [path / name / "model" / "model.safetensors" for path in (folder, whole)]
        assert files[0].read_bytes() == files[1].read_bytes()
    before = (folder / RESULTS).read_bytes()
    result = prnas.fit(resume=folder, meter=SaidMeter(False))
    assert (folder / RESULTS).read_bytes() == before
    assert result.results == results
    assert result.report == folder / PAGE
    assert [one["name"] for one in result.table] == list(NAMES)
    assert result.model.class_names == ("0", "1", "2")
    assert "% in the test" in repr(result)
    assert result._repr_html_().count("<tr>") == 4
    assert result.rows() == result.table
    Image.new("RGB", (20, 12), "red").save(tmp_path / "red.png")
    (red,) = result.predict(tmp_path / "red.png", top=3).predictions
    assert {score.name for score in red.classes} == {"0", "1", "2"}
    (same,) = predict(prnas.load(folder), tmp_path / "red.png", top=3).predictions
    assert same.classes == red.classes


class PressesCtrlC(Callback):
    """As it were, when an epoch is over."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def on_epoch(self, record: EpochRecord) -> None:
        if record.epoch == self.epoch:
            os.kill(os.getpid(), signal.SIGINT)


class EndsWithin(Ends):
    """Ends the process within a stage, by a signal after an epoch."""

    def __init__(self, stage: str, epoch: int) -> None:
        super().__init__("none")
        self.within, self.epoch = stage, epoch

    def callbacks(self, stage: str) -> list[Callback]:
        return [PressesCtrlC(self.epoch)] if stage == self.within else []


def test_stopped_in_its_first_training_it_keeps_the_best_epoch(few: Path, tmp_path: Path) -> None:
    folder = made_folder(few, tmp_path, "early")
    searching, training = EndsWithin("search", 1), EndsWithin("found", 2)
    with pytest.raises(Stopped):
        fit.resume(folder, meter=SaidMeter(), listener=searching)
    assert not (folder / "model").exists()
    with pytest.raises(Stopped):
        fit.resume(folder, meter=SaidMeter(), listener=training)
    assert "the best network so far: found by the search is in" in training.said[-1]
    assert training.said[-1].endswith(", trained in part")
    scores = [epoch.scores["validation"] for epoch in prnas.read_run(folder / "found").epochs]
    ranks = [(score.accuracy, -score.loss) for score in scores]
    assert len(ranks) == 2
    assert prnas.load(folder).card.results == {"kept_epoch": ranks.index(max(ranks)) + 1}


def test_pictures_or_a_fit_to_go_on_with() -> None:
    with pytest.raises(UserError, match="one of the two"):
        prnas.fit()
    with pytest.raises(UserError, match="one of the two"):
        prnas.fit("digits", resume="runs/x")


class Misspelt(Listener):
    def on_stages(self, name: str, number: int, of: int) -> None: ...


@pytest.mark.parametrize(
    ("listener", "message"),
    [
        (print, "must be a prnas.fitting.events.Listener object"),
        (Callback(), "must be a prnas.fitting.events.Listener object"),
        (Ends, "is a class; a listener is an object of it: Ends()"),
        (Misspelt(), "Misspelt.on_stages would never be called.* Did you mean 'on_stage'?"),
    ],
)
def test_what_is_no_listener_is_refused_at_once(listener: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message.replace("()", r"\(\)")):
        prnas.fit("no/folder", listener=listener)


def test_a_changed_plan_is_refused(whole: Path, tmp_path: Path) -> None:
    file = tmp_path / "fit.json"
    file.write_text((whole / "fit.json").read_text().replace('"minutes": 1.0', '"minutes": 2.0'))
    with pytest.raises(UserError, match="changed or damaged"):
        fit.resume(tmp_path, meter=SaidMeter())


def test_a_part_that_cannot_go_on_names_the_fit(
    few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made_folder(few, tmp_path, "full")

    def full(*_: Any, **__: Any) -> None:
        raise UserError("No space left on device.")

    monkeypatch.setattr("prnas.searching.api.start", full)
    with pytest.raises(UserError) as error:
        fit.resume(folder, meter=SaidMeter())
    again = f"The whole fit goes on by `prnas fit --resume {folder}`."
    assert str(error.value) == f"No space left on device. {again}"

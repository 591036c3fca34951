"""The tutorials, followed to the letter; and the docs name every field of the files they leave."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from prnas.config.search import SearchConfig
from prnas.fitting import configs, exports, fit, plan
from prnas.fitting.plan import StepTimes
from prnas.io.errors import UserError
from prnas.studies import attempt
from tests.support.described_fields import assert_described
from tests.support.fences import ROOT
from tests.support.in_process import Cli
from tests.support.made_fits import CYCLES, SaidMeter
from tests.support.tutorials import follow
from tests.support.warm_jobs import WARM

TUTORIALS = ROOT / "docs" / "tutorials"
RESULTS = ("circle", "square")  # Another training may take one for the other.


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def typed(here: Cli, arguments: Sequence[str]) -> str:
    code, out, err = here.run(*arguments)
    assert code == 0, out + err
    return out


SMALLEST = ((3, 4),)  # Cells and channels.


class SlowMachine(SaidMeter):
    """There is time for few epochs."""

    def training(self, config: Any, data: Any) -> StepTimes:
        return StepTimes(2.5, 0.0, 0.0, 0.0)


def test_your_own_pictures(here: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are said, not measured, for a plan of few epochs; networks and search are small."""
    real = configs.search_config

    def short(*given: Any) -> SearchConfig:
        small = ["network.nodes=1", "evidence.measure=none"]
        return SearchConfig.from_data(
            real(*given).to_data() | {"schedule": {"cycles": CYCLES}}, small
        )

    def no_onnx() -> None:
        raise UserError("it takes its time, and is tested by itself")

    monkeypatch.setattr(configs, "search_config", short)
    monkeypatch.setattr(configs, "FINALS", SMALLEST)
    monkeypatch.setattr(plan, "SUPERNETS", SMALLEST)
    monkeypatch.setattr(exports, "check_onnx", no_onnx)
    monkeypatch.setattr(fit, "Meter", SlowMachine)
    monkeypatch.setattr(fit, "with_default_callbacks", list)
    page = TUTORIALS / "own-pictures.md"
    commands = follow(page, tmp_path, lambda words: typed(here, words), RESULTS)
    assert len(commands) == 7
    folder = tmp_path / "runs" / "shapes"
    assert_described("Plan of a fit", read(folder / "fit.json"))
    assert_described("Results of a fit", read(folder / "results.json"))
    optional = frozenset({"kind", "results.started_from"})
    assert_described("Model card", read(folder / "model" / "model.json"), optional)


@pytest.mark.slow
def test_your_own_pictures_in_ten_minutes(here: Cli, tmp_path: Path) -> None:
    page = TUTORIALS / "own-pictures.md"
    follow(page, tmp_path, lambda words: typed(here, words), RESULTS)
    assert (tmp_path / "runs" / "shapes" / "fit.html").is_file()


def test_compare(here: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "subprocess", WARM)
    follow(TUTORIALS / "compare.md", tmp_path, lambda words: typed(here, words))
    study = tmp_path / "runs" / "study"
    assert_described("Plan of a study", read(study / "study.json"))
    assert_described("Summary of a study", read(study / "summary.json"))
    attempts = (study / "attempts.jsonl").read_text(encoding="utf-8").splitlines()
    assert_described("Attempts", [json.loads(line) for line in attempts])
    run = tmp_path / "runs" / "first"
    assert_described("Environment", read(run / "environment.json"))
    optional = {"reduction", "normal.repeated_inputs", "normal.shape"}
    assert_described("Genotype", read(run / "genotype.json"), frozenset(optional))


def test_extend(here: Cli, tmp_path: Path) -> None:
    commands = follow(TUTORIALS / "extend.md", tmp_path, lambda words: typed(here, words))
    assert commands == ["python own.py"]
    assert (tmp_path / "runs" / "own" / "report.html").is_file()
    assert "grow blend" in (tmp_path / "runs" / "own" / "records.jsonl").read_text()

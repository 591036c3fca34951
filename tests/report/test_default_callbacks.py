"""The report of a search that runs: always there, never in the way."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from prnas.report import default_callbacks
from prnas.report import page as report
from prnas.report.default_callbacks import ReportCallback
from tests.support.pages import data_of
from tests.support.synthetic_runs import SESSION, search_records, write_search
from tests.support.synthetic_search import play, quick, start_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "a run"
    path.mkdir()
    (path / "environment.json").write_text(json.dumps({"sessions": [SESSION]}))
    return path


class Look(ReportCallback):
    """Reads the page after every epoch."""

    def __init__(self, folder: Path) -> None:
        super().__init__(self.complaints.append)
        self.folder = folder
        self.seen: list[int] = []

    complaints: list[str] = []  # noqa: RUF012 - one for the class is enough here

    def on_epoch(self, record: Any) -> None:
        super().on_epoch(record)
        page = (self.folder / "report.html").read_text(encoding="utf-8")
        self.seen.append(data_of(page)["runs"][0]["done"])


def test_the_page_is_there_after_every_epoch(folder: Path) -> None:
    look = Look(folder)
    play([look], folder=folder)
    assert look.seen == list(range(1, 21))
    assert look.complaints == []
    run = data_of((folder / "report.html").read_text(encoding="utf-8"))["runs"][0]
    assert run["ended"]
    assert run["name"] == "a run"
    assert len(run["cycles"]["steps"]["normal"]) == 9
    assert dict(run["facts"])["Device"] == "CPU (x86_64), 2 threads"
    assert not list(folder.glob(".*tmp"))


def test_a_resumed_search_shows_its_past(tmp_path: Path) -> None:
    folder = write_search(tmp_path / "run", cycles=2)
    callback = ReportCallback(pytest.fail)
    callback.on_start(start_of(quick(), folder, resumed=True))
    run = data_of((folder / "report.html").read_text(encoding="utf-8"))["runs"][0]
    assert run["done"] == 6


def test_without_a_folder_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    play([ReportCallback(pytest.fail)])
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_fails_stops_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    (folder / "report.html").mkdir()  # no file can take its place
    play([ReportCallback(said.append)], folder=folder)
    assert len(said) == 1
    assert "the run goes on" in said[0]

    def fail(*_: Any) -> None:
        raise ZeroDivisionError("a mistake of ours")

    monkeypatch.setattr(default_callbacks, "write_page", fail)
    play([ReportCallback(said.append)], folder=folder)
    assert len(said) == 2
    assert "a mistake of ours" in said[1]
    (folder / "environment.json").unlink()
    play([ReportCallback(said.append)], folder=folder)
    assert len(said) == 3


def test_it_is_cheap_in_a_long_search(tmp_path: Path) -> None:
    """A thousand epochs: making the page takes a small part of any epoch's time."""
    long = "schedule.cycles=[{epochs: 1000, grace_epochs: 10, morphisms: 0, candidates: 1}]"
    view = report.view_of(report.RunInfo("long", "long", quick(long).to_data()))
    for record in search_records(long):
        view.add(record)
    times = []
    for _ in range(3):
        began = time.perf_counter()
        report.write_page(tmp_path / "report.html", [view])
        times.append(time.perf_counter() - began)
    assert min(times) < 0.5  # on a loaded machine; 30 ms on an idle one

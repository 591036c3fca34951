"""The data of a study's page, and when it is written."""

from pathlib import Path
from typing import Any

import pytest

from prnas.report.html import render
from prnas.studies import page as page_module
from prnas.studies.attempt import Ended
from prnas.studies.folder import open_study
from prnas.studies.live_page import LiveStudy
from prnas.studies.page import LEAST_SECONDS, MOST_DRAWN, PageWriter, study_data
from prnas.studies.states import JobState
from tests.support.made_studies import made_plan, made_states, many_rows
from tests.support.pages import data_of
from tests.support.synthetic_runs import write_search

PLAN = made_plan()


def shown_in(path: Path) -> dict[str, Any]:
    return data_of(path.read_text(encoding="utf-8"))["study"]


def test_links_lead_from_the_page_to_the_study(tmp_path: Path) -> None:
    states = made_states(PLAN)
    data = study_data(tmp_path / "a study", PLAN, states)
    assert data["study"]["links"] == "./"
    data = study_data(tmp_path / "a study", PLAN, states, page=tmp_path / "pages" / "x.html")
    assert data["study"]["links"] == "./../a%20study/"


def test_many_genotypes_are_drawn_evenly_from_best_to_worst() -> None:
    plan = made_plan(seeds=40)
    study = study_data(Path("s"), plan, made_states(plan))["study"]
    drawn = study["genotypes"]
    assert [(len(row["drawn"]), row["of"]) for row in drawn] == [(6, 40), (6, 40), (1, 1)]
    errors = [one["error"] for one in drawn[0]["drawn"]]
    every = sorted(unit["error"] for unit in study["rows"][0]["units"])
    assert errors == sorted(errors)
    assert (errors[0], errors[-1]) == (every[0], every[-1])
    wide = made_plan(rows=many_rows(MOST_DRAWN // 2 + 1), seeds=2)
    few = study_data(Path("s"), wide, made_states(wide))["study"]["genotypes"]
    assert {len(row["drawn"]) for row in few} == {1}


def test_jobs_that_are_known_to_run_do_so_and_have_no_problems() -> None:
    states = made_states(PLAN, 0.5)
    states[20] = JobState("wrong", message="another run")
    problems = {1: "long past", 13: "again", 14: "no disk"}
    study = study_data(Path("s"), PLAN, states, problems, {13})["study"]
    counts = study["jobs"]
    assert (counts["done"], counts["running"], counts["wrong"], counts["problems"]) == (12, 1, 1, 2)
    assert [(number, text) for number, _, _, text in study["problems"]] == [
        (14, "no disk"),
        (20, "another run"),
    ]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_page_is_written_at_both_ends_and_not_too_often_between(tmp_path: Path) -> None:
    said: list[str] = []
    clock, states = Clock(), made_states(PLAN, 0.5)
    writer, path = PageWriter(tmp_path, said.append, clock), tmp_path / "report.html"
    writer.on_start(PLAN, states)
    assert shown_in(path)["jobs"]["done"] == 12
    job = PLAN.jobs[12]
    writer.on_job(job, None)
    writer.on_tick()
    assert "running" not in shown_in(path)["jobs"]
    clock.now = LEAST_SECONDS
    writer.on_tick()
    assert shown_in(path)["jobs"]["running"] == 1
    states[13] = made_states(PLAN)[13]
    ended = Ended(None, 0)  # pyright: ignore[reportArgumentType] - its task is not looked at
    writer.on_job_end(job, ended, states[13], "")
    writer.on_tick()
    assert shown_in(path)["jobs"]["done"] == 12
    writer.close()
    assert shown_in(path)["jobs"]["done"] == 13
    assert said == []


def test_refreshing_takes_a_small_share_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, times = Clock(), list[float]()

    def slow(data: Any) -> str:
        clock.now += 3.0
        times.append(clock.now)
        return render(data)

    monkeypatch.setattr(page_module, "render", slow)
    writer = PageWriter(tmp_path, lambda text: None, clock)
    writer.on_start(PLAN, made_states(PLAN, 0.5))
    while clock.now < 1000:
        clock.now += 1.0
        writer.on_job(PLAN.jobs[12], None)
        writer.on_tick()
    assert 3 <= len(times) <= 4


def test_a_page_that_cannot_be_written_is_told_once(tmp_path: Path) -> None:
    said: list[str] = []
    writer = PageWriter(tmp_path / "nowhere", said.append)
    writer.on_start(PLAN, made_states(PLAN))
    writer.close()
    assert len(said) == 1
    assert "the study goes on without it" in said[0]


def test_a_live_study_serves_its_jobs_and_nothing_else(tmp_path: Path) -> None:
    clock, study = Clock(), tmp_path / "study"
    open_study(study, made_plan(seeds=1))
    write_search(tmp_path / "secret", cycles=1)
    live = LiveStudy(study, lambda text: None, clock)
    first = live.data()
    assert live.subpage("/pr-darts/seed-0") is None
    write_search(study / "pr-darts" / "seed-0", cycles=1)
    assert live.data() == first, "it does not look at every request"
    clock.now += 60
    assert live.data() != first
    run = live.subpage("/pr-darts/seed-0")
    assert run is not None
    assert b"seed-0" in run.page()
    assert live.subpage("/pr-darts/seed-0") is run
    for path in (
        "/secret",
        "/../secret",
        "/pr-darts/../../secret",
        "/pr-darts/seed-9",
        "/pr-darts",
    ):
        assert live.subpage(path) is None
    assert not live.ended

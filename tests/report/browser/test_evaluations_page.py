"""What a searcher asked for, in a real browser."""

from pathlib import Path
from typing import Any

import pytest

from prnas.report.evaluations import SCORE_PLOTS
from prnas.report.figures import figures
from prnas.report.page import write_page
from prnas.report.read_run import read_view
from prnas.report.search_view import SearchView
from prnas.runs.record_lines import read_records
from prnas.runs.records import EvaluationRecord
from prnas.searching.api import search
from tests.support.views import search_view


@pytest.fixture
def run(tmp_path: Path) -> Path:
    search("evolution", overrides=["searcher.budget.evaluations=30"], runs=tmp_path, name="run")
    return tmp_path / "run"


def test_every_scored_cell_is_a_dot(visit: Any, run: Path) -> None:
    data = read_view(run).data()["searcher"]
    seen = visit(run / "report.html")
    counts = [
        one.get_attribute("data-dots") for one in seen.page.locator("#evaluations .dots").all()
    ]
    assert counts == ["30", "30"]
    links = seen.page.locator("#evaluations .family").first.get_attribute("data-links")
    assert int(links) == sum(parent is not None for parent in data["parents"]) == 20
    best = data["scores"].index(max(data["scores"])) + 1
    said = seen.page.locator("#evaluations .lead").inner_text()
    assert f"came in evaluation {best}" in said
    assert "30 evaluations, the worth of 9,000,000 images." in said
    parent = data["parents"][best - 1]
    assert parent is None or "its ancestors were" in said
    assert seen.page.locator("#evaluations .best-so-far").count() == 1


def test_figures_draw_the_list_of_the_page(visit: Any, run: Path) -> None:
    view = read_view(run)
    titles = [plot["title"] for plot in view.data()["searcher"]["plots"]]
    seen = visit(run / "report.html")
    assert seen.page.locator("#evaluations .chart-title").all_inner_texts() == titles
    files = dict(figures(view))
    for plot in SCORE_PLOTS:
        assert files[f"{plot.id}.pdf"].startswith(b"%PDF")
        drawn = files[f"{plot.id}.svg"].decode()
        assert plot.across in drawn
        assert drawn.count("<use ") >= 30  # a dot for every cell
    assert not any(name.startswith("best-so-far") for name, _ in figures(search_view(cycles=1)))


def test_where_nothing_was_trained_there_are_no_curves(visit: Any, run: Path) -> None:
    seen = visit(run / "report.html")
    assert not seen.page.locator("#curves").is_visible()
    assert not seen.page.locator("#cells").is_visible()
    assert seen.page.locator("#truth").is_visible()
    assert seen.page.get_by_role("heading", name="The cell that was found").is_visible()
    tiles = seen.page.locator(".tile").all_inner_texts()
    assert any("Evaluations" in tile and "30" in tile for tile in tiles)
    assert any("validation after 12 epochs" in tile for tile in tiles)


def test_other_searches_have_no_such_section(visit: Any, tmp_path: Path) -> None:
    write_page(tmp_path / "report.html", [search_view()])
    seen = visit(tmp_path / "report.html")
    assert not seen.page.locator("#evaluations").is_visible()
    assert seen.page.locator("#curves").is_visible()


def test_the_entropy_of_a_controller_is_told(visit: Any, run: Path, tmp_path: Path) -> None:
    overrides = ["searcher.method=controller", "searcher.budget.evaluations=12"]
    search("random", overrides=overrides, runs=tmp_path, name="written")
    first, *_, last = read_view(tmp_path / "written").data()["searcher"]["entropies"]
    assert 0 < last < first < 10
    said = visit(tmp_path / "written" / "report.html").page.locator("#evaluations .lead")
    assert "The controller's choices had an entropy of " in said.inner_text()
    plain = visit(run / "report.html").page.locator("#evaluations .lead")
    assert "entropy" not in plain.inner_text()


def test_several_are_compared(visit: Any, run: Path, tmp_path: Path) -> None:
    search("random", overrides=["searcher.budget.evaluations=5"], runs=tmp_path, name="other")
    write_page(tmp_path / "both.html", [read_view(run), read_view(tmp_path / "other")])
    seen = visit(tmp_path / "both.html")
    assert "2 runs" in seen.page.locator("h1").inner_text()


def test_proxies_are_shown_as_numbers_and_repeated_scores_as_noise(
    visit: Any, run: Path, tmp_path: Path
) -> None:
    view = SearchView(read_view(run).info)
    asked = [
        one for one in read_records(run / "records.jsonl") if isinstance(one, EvaluationRecord)
    ]
    for one in asked:
        changes: dict[str, Any] = {
            "measure": "nwot",
            "score": 300.0 + one.number,
            "best": 300.0 + one.number,
        }
        changes |= {"proxies": {"nwot": 300.5}, "genotype": asked[0].genotype}
        view.add(one.model_copy(update=changes))
    write_page(tmp_path / "page.html", [view])
    seen = visit(tmp_path / "page.html")
    said = seen.page.locator("#evaluations .lead").inner_text()
    assert "The best score, 330, came" in said
    assert "1 cell was scored more than once: their scores have a standard deviation of 8.8" in said

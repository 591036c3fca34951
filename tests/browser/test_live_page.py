"""`prnas watch` in a real browser: the page grows in place."""

from pathlib import Path
from typing import Any

from prnas.reporting.records import CycleRecord
from tests.live_watch import grow, watching
from tests.synthetic_runs import search_records, write_search


def test_a_live_run_grows_and_keeps_ones_place(visit: Any, tmp_path: Path) -> None:
    records = search_records()
    known = next(i for i, one in enumerate(records) if isinstance(one, CycleRecord)) + 1
    folder = write_search(tmp_path / "run", cycles=1)
    with watching(str(folder), "--port", "0") as server:
        seen = visit(server.url)
        page = seen.page
        assert seen.text(".live") == "live"
        assert "3 of 20" in seen.text("header")
        # One's place: a zoom, a hidden line, a cycle, an edge, and a mark that a reload would lose.
        page.locator(".cycle-button").nth(0).click()
        page.locator("[data-chart-box=accuracy] [data-series=validation]").click()
        page.locator("input[type=range]").fill("0")
        page.locator("[data-edge=reduction-4]").click()
        page.evaluate("window.mark = 'still here'")
        grow(folder, records[known:])
        page.wait_for_selector("body[data-ended]", timeout=15_000)
        assert "finished" in seen.text("header")
        assert seen.value("window.mark") == "still here"
        assert seen.text("[data-where]") == "epochs 1–3 of 20"
        hidden = page.locator("[data-chart-box=accuracy] [data-series=validation]")
        assert hidden.get_attribute("aria-pressed") == "false"
        assert seen.count("[data-chart=accuracy] .series") == 2
        assert seen.text("output") == "Cycle 1 of 9"
        assert page.locator("input[type=range]").get_attribute("max") == "9"
        assert page.locator(".tree select").input_value() == "reduction-4"
        page.locator("input[type=range]").fill("9")
        assert seen.count(".picture") == 2
        assert {url.removeprefix(server.url) for url in seen.requests} <= {"", "data.json"}
        assert "ended" in server.line()


def test_it_says_when_nobody_answers(visit: Any, tmp_path: Path) -> None:
    with watching(str(write_search(tmp_path / "run", cycles=1)), "--port", "0") as server:
        seen = visit(server.url)
        server.process.kill()
        seen.page.wait_for_selector(".live.lost", timeout=15_000)
        assert "is prnas watch still running?" in seen.text(".live")
        # The browser itself tells of the connection that was refused.
        assert all("ERR_CONNECTION_REFUSED" in one for one in seen.complaints)
        seen.complaints.clear()

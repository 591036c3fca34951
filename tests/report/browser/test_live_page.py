"""`prnas watch` in a real browser: the page grows in place."""

from pathlib import Path
from typing import Any

from prnas.runs.records import CycleRecord
from tests.support.browser import WAIT
from tests.support.live_watch import grow, watching
from tests.support.synthetic_runs import (
    search_records,
    training_records,
    write_search,
    write_training,
)


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
        page.wait_for_selector("body[data-ended]", timeout=WAIT)
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


def test_the_next_seed_makes_a_comparison(visit: Any, tmp_path: Path) -> None:
    group = tmp_path / "group"
    write_training(group / "seed-0", 0)
    (group / "group.json").write_text('{"format":"prnas-retrain-group","version":1,"seeds":[0,1]}')
    with watching(str(group), "--port", "0") as server:
        seen = visit(server.url)
        page = seen.page
        seen.expect("h1").to_contain_text("seed-0")
        seen.expect(".kind").to_contain_text("group")
        page.evaluate("window.mark = 'still here'")
        second = write_training(group / "seed-1", 1, end=False)
        seen.expect("h1").to_contain_text("2 runs")
        seen.expect("h1 .state").to_have_text("not finished")
        seen.expect(".live").to_have_text("live")
        seen.expect("[data-chart=training-error-test] .series").to_have_count(2)
        *_, end = training_records(1)
        grow(second, [end])
        page.wait_for_selector("body[data-ended]", timeout=WAIT)
        seen.expect("h1 .state").to_have_text("finished")
        assert seen.value("window.mark") == "still here"
        assert "ended" in server.line()


def test_news_leave_focus_and_selection(visit: Any, tmp_path: Path) -> None:
    """What did not change is not touched: a command that was just selected stays so."""
    records = search_records()
    ends = [i for i, one in enumerate(records) if isinstance(one, CycleRecord)]
    folder = write_search(tmp_path / "run", cycles=1)
    known = ends[0] + 1
    with watching(str(folder), "--port", "0") as server:
        seen = visit(server.url)
        page = seen.page
        page.evaluate(
            "getSelection().selectAllChildren(document.querySelector('.commands code bdi'))"
        )
        selected = seen.value("String(getSelection())")
        assert selected.startswith("prnas search")
        for number, control in enumerate(
            (
                ".copy >> nth=0",
                ".cycle-button >> nth=1",
                "[data-series=validation] >> nth=0",
                "[data-edge=normal-2]",
                ".scroll, .tree select",
            )
        ):
            page.locator(control).first.evaluate("(one) => { one.focus(); window.focused = one; }")
            told = seen.text(".tiles")
            until = ends[number + 1] + 1
            grow(folder, records[known:until])
            known = until
            page.wait_for_function(
                "(told) => document.querySelector('.tiles').innerText !== told",
                arg=told,
                timeout=WAIT,
            )
            assert seen.value(
                "document.activeElement === window.focused"
                " || document.activeElement.dataset.edge === window.focused.dataset.edge"
                " && document.activeElement !== document.body"
            ), control
            assert seen.value("String(getSelection())") == selected


def test_it_says_when_nobody_answers(visit: Any, tmp_path: Path) -> None:
    with watching(str(write_search(tmp_path / "run", cycles=1)), "--port", "0") as server:
        seen = visit(server.url)
        server.process.kill()
        seen.page.wait_for_selector(".live.lost", timeout=WAIT)
        assert "is prnas watch still running?" in seen.text(".live")
        # The browser itself tells of the connection that was refused or cut.
        assert all("ERR_CONNECTION_" in one for one in seen.complaints)
        seen.complaints.clear()

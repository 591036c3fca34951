"""The page of a study in a real browser."""

from pathlib import Path
from typing import Any

import pytest

from prnas.studies.folder import open_study
from tests.support.browser import WAIT
from tests.support.live_watch import watching
from tests.support.made_studies import made_plan, many_rows, write_study_page
from tests.support.synthetic_runs import HOSTILE, write_search

FRAME = """(async (act) => {
  const times = [];
  for (let i = 0; i < 6; i++) {
    const began = performance.now();
    act(i);
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    times.push(performance.now() - began);
  }
  return Math.min(...times);
})"""


@pytest.fixture(scope="module")
def study_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("studies") / "my-study"
    folder.mkdir()
    return write_study_page(folder / "report.html", made_plan(trainings=2, description="Luck?"))


def rows_of(seen: Any, selector: str) -> list[list[str]]:
    return [row.inner_text().split("\t") for row in seen.page.locator(f"{selector} tbody tr").all()]


def test_it_says_what_may_be_concluded(visit: Any, study_page: Path) -> None:
    seen = visit(study_page)
    assert seen.requests == [study_page.as_uri()]
    assert seen.value("document.title") == "my-study · prnas"
    assert seen.text("h1").split() == ["my-study", "finished"]
    assert "Luck?" in seen.text("header")
    shown, limits = seen.text(".verdict.shown"), seen.text(".verdict.open")
    assert "pr-darts is better than random, by " in shown
    assert "darts-v2 is better than random, by " in shown
    assert "No difference is shown between pr-darts and darts-v2; there may be one." in limits
    assert "these data" in limits
    assert seen.count(".problems") == 0


def test_every_search_is_a_dot_and_rows_sort(visit: Any, study_page: Path) -> None:
    seen = visit(study_page)
    dots = "[...document.querySelectorAll('.dot-plot .dots')].map((one) => one.dataset.dots)"
    assert seen.value(dots) == ["6", "6", "6"]  # two trainings of a search are one dot
    assert seen.count(".dot-plot .mean-mark") == seen.count(".dot-plot .interval") == 3
    strips = "[...document.querySelectorAll('.strip')].map((one) => one.dataset.strip)"

    def names() -> list[str]:
        return [row[0].split("\n")[0] for row in rows_of(seen, ".study-rows")]

    assert names()[2] == "random"  # by its error, to begin with
    assert seen.count("[aria-sort=ascending]") == 1
    seen.page.locator("[data-sort='1']").click()
    assert names()[0] == "random"
    assert seen.value(strips) == names()
    assert seen.count("[aria-sort=descending]") == 1
    seen.page.locator("[data-sort='-1']").focus()
    seen.page.keyboard.press("Enter")
    assert names() == ["darts-v2", "pr-darts", "random"]
    assert seen.value("document.activeElement.dataset.sort") == "-1"
    seen.page.locator("[data-sort='8']").click()  # what is missing comes last, either way
    assert names()[0] == "pr-darts"
    seen.page.locator("[data-sort='8']").click()
    assert names()[0] == "pr-darts"


def test_pairs_costs_and_genotypes(visit: Any, study_page: Path) -> None:
    seen = visit(study_page)
    pairs = {row[0]: row[-1] for row in rows_of(seen, ".pair-table")}
    assert sorted(pairs.values()) == ["differ", "differ", "not shown"]
    assert pairs["pr-darts – darts-v2"] == "not shown"
    assert seen.count(".pair.better") == seen.count(".pair.worse") == 2
    assert seen.count(".scatter:visible") == 3
    assert seen.page.locator(".scatter .point-name").all_text_contents()[-1] == "pr-darts"
    assert seen.count(".row-genotypes") == 3
    assert seen.count(".small-genotypes article") == 6 + 6 + 1
    errors = seen.page.locator(".row-genotypes >> nth=0 >> .caption").all_inner_texts()
    values = [float(text.split(" · ")[1].removesuffix(" %")) for text in errors]
    assert values == sorted(values)


def test_dots_and_tables_lead_to_the_runs(visit: Any, study_page: Path) -> None:
    seen = visit(study_page)
    page = seen.page
    plot = page.locator(".dot-plot .plot")
    x, y = (
        float(one)
        for one in seen.value(
            "document.querySelector('.strip .dots').getAttribute('d').match(/M([0-9.]+) ([0-9.]+)/)"
        )[1:]
    )
    plot.hover(position={"x": x, "y": y})
    assert "pr-darts · seed 0" in seen.text(".dot-plot .tooltip")
    page.locator("summary").first.click()
    seen.expect(".unit-table tbody tr").to_have_count(6)
    links = page.locator(".unit-table a").evaluate_all("all => all.map((one) => one.href)")
    run = f"{study_page.parent.as_uri()}/pr-darts/seed-0"
    assert links[:3] == [f"{run}{one}/report.html" for one in ("", "-training-0", "-training-1")]
    report = study_page.parent / "pr-darts" / "seed-0" / "report.html"
    report.parent.mkdir(parents=True)
    report.write_text("the run's own")
    plot.click(position={"x": x, "y": y})
    page.wait_for_url(report.as_uri())


def test_a_study_under_way(visit: Any, tmp_path: Path) -> None:
    plan = made_plan()
    page = write_study_page(tmp_path / "half.html", plan, 0.5, {13}, problems={14: "no <b>disk"})
    seen = visit(page, width=390)
    assert "not finished: 50 %" in seen.text("h1")
    assert "1 running" in seen.text("header")
    assert "no <b>disk" in seen.text(".problem-table")
    assert "not all jobs are done" in seen.text(".verdict.open")
    seen = visit(write_study_page(tmp_path / "new.html", plan, 0.0))
    assert "no result yet" in seen.page.locator(".dot-plot").text_content()
    assert "Nothing can be concluded" in seen.text(".verdict.open")
    assert seen.count(".costs-section:visible") == 0
    searches = made_plan(rows=many_rows(2), trainings=0)
    seen = visit(write_study_page(tmp_path / "searches.html", searches))
    assert "Nothing was trained" in seen.text(".verdict.open")
    assert seen.count(".pairs-section") == 0


def test_hostile_words_do_no_harm(visit: Any, tmp_path: Path) -> None:
    plan = made_plan(description=HOSTILE)
    page = write_study_page(tmp_path / "page.html", plan, 0.9, problems={24: HOSTILE})
    seen = visit(page, width=800)
    assert seen.value("document.body.dataset.hacked") is None
    assert seen.count("img") == 0
    assert "<script>" in seen.text("header")
    assert "\\u202e" in seen.text(".problem-table")


@pytest.mark.parametrize(("width", "scheme"), [(1400, "dark"), (800, "light"), (390, "light")])
def test_sizes_and_paper(visit: Any, study_page: Path, width: int, scheme: str) -> None:
    seen = visit(study_page, width=width, color_scheme=scheme)
    assert seen.value("document.documentElement.scrollWidth") <= width
    seen.page.locator("summary").first.click()
    assert seen.value("document.documentElement.scrollWidth") <= width
    # The error stands beside the name, without scrolling.
    cell = seen.page.locator(".study-rows tbody td").nth(1).bounding_box()
    assert cell["x"] + cell["width"] <= width
    seen.page.emulate_media(media="print", color_scheme=scheme)
    assert seen.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert seen.page.pdf(format="A4").count(b"/Type /Page\n") in range(2, 8)


def test_a_thousand_runs_stay_smooth(visit: Any, tmp_path: Path) -> None:
    plan = made_plan(rows=many_rows(5), seeds=100)
    assert len(plan.jobs) == 1000
    page = write_study_page(tmp_path / "many.html", plan, genotypes=6)  # as many as a row shows
    assert page.stat().st_size < 1_500_000
    seen = visit(page)
    # The best of some: other work on the machine must not fail this.
    timing = "performance.getEntriesByType('navigation')[0]"
    spent = [seen.value(f"{timing}.domContentLoadedEventEnd - {timing}.responseEnd")]
    for _ in range(2):
        seen.page.reload()
        seen.page.wait_for_selector("body[data-ready]")
        spent.append(seen.value(f"{timing}.domContentLoadedEventEnd - {timing}.responseEnd"))
    assert min(spent) < 1000
    sort = "(i) => document.querySelector(`[data-sort='${i}']`).click()"
    assert seen.value(f"{FRAME}({sort})") < 100
    point = (
        "(i) => document.querySelector('.dot-plot .plot').dispatchEvent(new PointerEvent("
        "'pointermove', {clientX: 300 + 40 * i, clientY: 400, bubbles: true}))"
    )
    assert seen.value(f"{FRAME}({point})") < 50
    seen.page.locator("summary").first.click()
    seen.expect(".unit-table tbody tr").to_have_count(100)


def test_watched_live(visit: Any, tmp_path: Path) -> None:
    study = tmp_path / "study"
    open_study(study, made_plan(seeds=1))
    with watching(str(study), "--port", "0") as server:
        seen = visit(server.url)
        seen.expect("h1").to_contain_text("not finished: 0 %")
        seen.page.evaluate("window.mark = 'still here'")
        seen.page.locator("[data-sort='0']").click()
        # A job begins: its run has no more than records, so it can go on, and has a page.
        write_search(study / "pr-darts" / "seed-0", cycles=1)
        seen.page.locator("summary").first.click()
        seen.page.wait_for_selector(".unit-table a", timeout=WAIT)
        assert seen.value("window.mark") == "still here"
        assert seen.page.locator("[aria-sort]").inner_text().startswith("n")
        seen.page.locator(".unit-table a").first.click()
        seen.expect("h1").to_contain_text("seed-0")
        seen.page.wait_for_selector(".live")
        paths = {url.removeprefix(server.url) for url in seen.requests}
        run = "pr-darts/seed-0"
        assert paths <= {"", "data.json", f"{run}/report.html", f"{run}/data.json"}

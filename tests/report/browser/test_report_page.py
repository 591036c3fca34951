"""The report in a real browser, opened from disk."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from prnas.report.html import render
from prnas.report.page import page_data, view_of, write_page
from prnas.report.view import RunInfo
from prnas.runs.records import EpochRecord
from tests.support.synthetic_runs import (
    HOSTILE,
    LONG,
    SESSION,
    search_records,
)
from tests.support.synthetic_search import quick
from tests.support.views import search_view, training_view

PAPER = (
    "schedule.cycles=["
    + ",".join(
        f"{{epochs: {epochs}, grace_epochs: {grace}, morphisms: {new}, candidates: {candidates}}}"
        for epochs, grace, new, candidates in zip(
            (15, 15, 10, 10, 10, 10, 10, 10, 10),
            (5, 5, 3, 3, 3, 3, 3, 3, 3),
            (3, 3, 3, 3, 3, 0, 0, 0, 0),
            (6, 6, 6, 6, 6, 4, 3, 2, 1),
            strict=True,
        )
    )
    + "]"
)


@pytest.fixture(scope="module")
def search_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "report.html"
    write_page(path, [search_view(genotype="pr-darts-dl1")])
    return path


def slide(page: Any, step: int) -> None:
    page.locator("input[type=range]").fill(str(step))


def test_it_opens_from_disk_and_asks_for_nothing(visit: Any, search_page: Path) -> None:
    seen = visit(search_page)
    assert seen.requests == [search_page.as_uri()]
    assert seen.value("document.title") == "a run · prnas"
    head = seen.text("header")
    for part in (
        "Validation accuracy",
        "36 channels, 20 cells, 10 classes",
        "for 32×32",
        "digits",
        "darts-like",
        "CPU",
    ):
        assert part in head
    assert "prnas search 'runs/a run/config.yaml'" in head
    assert "prnas retrain 'runs/a run'" in head
    charts = {one.get_attribute("data-chart") for one in seen.page.locator(".plot").all()}
    assert charts >= {
        *("accuracy", "loss", "learning-rate", "batch-size", "seconds", "images-per-second"),
        *("memory", "similarity", "parents", "operations-normal", "operations-reduction"),
        *("kernels-normal", "kernels-reduction", "architecture-rate", "edits", "skips"),
    }
    # Nine cycles in every chart, each begins with its grace epochs.
    assert seen.count("[data-chart=loss] .grace") == 9
    assert seen.count("[data-chart=loss] .cycle-number") == 9


def test_every_line_and_every_key_has_a_colour(visit: Any, search_page: Path) -> None:
    seen = visit(search_page)
    strokes = seen.value(
        "[...document.querySelectorAll('.series path, .legend .swatch path')]"
        ".map((path) => getComputedStyle(path).stroke)"
    )
    assert len(strokes) > 40
    assert all(re.fullmatch(r"rgb\(.*\)", stroke) for stroke in strokes)
    # Counts have whole ticks, each once.
    ticks = seen.page.locator("[data-chart=discovered] .tick[text-anchor=end]").all_text_contents()
    assert ticks == ["0", "5", "10", "15"]


def test_the_page_may_not_reach_the_network(visit: Any, search_page: Path) -> None:
    """Even a script of ours could not: the policy forbids it."""
    seen = visit(search_page)
    assert seen.value("fetch('https://example.org/').then(() => 'went', () => 'refused')") == (
        "refused"
    )
    assert all(url.startswith("file:") for url in seen.requests)
    assert all("violates" in one for one in seen.complaints), seen.complaints
    assert seen.complaints
    seen.complaints.clear()


def test_hover_toggle_and_zoom(visit: Any, search_page: Path) -> None:
    seen = visit(search_page)
    page = seen.page
    plot = page.locator("[data-chart=accuracy]")
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 100)
    page.wait_for_selector(".tooltip:not([hidden])")
    tip = seen.text(".tooltip:not([hidden])")
    found = re.match(r"epoch (\d+) · cycle (\d)(, grace)?\n", tip)
    assert found, tip
    epochs = [one for one in search_records() if isinstance(one, EpochRecord)]
    pointed = epochs[int(found[1]) - 1]
    assert 8 <= int(found[1]) <= 12  # in the middle
    assert (int(found[2]), bool(found[3])) == (pointed.cycle, pointed.grace)
    accuracy = pointed.scores["validation"].accuracy
    assert f"validation\n{100 * accuracy:.1f} %" in tip
    assert seen.count("[data-chart=loss] .cursor path") == 1  # the same epoch in all charts
    page.mouse.move(2, 2)

    button = page.locator("[data-chart-box=accuracy] [data-series=validation]")
    assert seen.count("[data-chart=accuracy] .series") == 3
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert seen.count("[data-chart=accuracy] .series") == 2
    assert seen.count("[data-chart=loss] .series") == 3

    assert seen.text("[data-where]") == "epochs 1–20 of 20"
    box = plot.bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 80)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 90, steps=4)
    page.mouse.up()
    zoomed = seen.text("[data-where]")
    assert zoomed != "epochs 1–20 of 20"
    page.wait_for_function(  # zoomed as well
        "() => document.querySelectorAll('[data-chart=loss] .cycle-number').length < 9"
    )
    assert button.get_attribute("aria-pressed") == "false"
    plot.dblclick(position={"x": 100, "y": 100})
    assert seen.text("[data-where]") == "epochs 1–20 of 20"
    page.locator(".cycle-button").nth(1).click()
    assert seen.text("[data-where]") == "epochs 4–6 of 20"


def test_the_slider_and_the_family_tree(visit: Any, search_page: Path) -> None:
    seen = visit(search_page)
    page = seen.page
    assert seen.text("output") == "The genotype"
    assert seen.count(".picture") == 2
    assert "conv 5x5 ×[1]" in page.locator(".picture").first.text_content()
    slide(page, 1)
    assert seen.text("output") == "Cycle 2 of 9"
    assert seen.count(".picture") == 0
    assert seen.count(".edge") == 28
    assert seen.count(".edge >> nth=0 >> .candidate") == 6
    assert seen.count(".edge >> nth=0 >> .candidate.pruned") == 3
    child = page.locator(".edge >> nth=0 >> .child").first.inner_text()
    assert " of " in child  # its morphism and its parent
    first = seen.text(".tree-summary"), page.locator(".tree-box").inner_html()
    card = page.locator("[data-edge=reduction-7]")
    card.click()
    assert card.get_attribute("aria-pressed") == "true"
    assert page.locator(".tree select").input_value() == "reduction-7"
    assert page.locator(".tree-box").inner_html() != first[1]
    names = page.locator(".tree-name").all_text_contents()
    assert {"max 3x3", "avg 3x3", "skip", "conv 3x3"} <= set(names)
    assert "grow kernel" in page.locator(".tree-box").text_content()
    assert seen.count(".tree-end") > 0  # who was pruned, and its score


def test_a_cell_of_another_shape(visit: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_page(path, [search_view("a run", "network.shape=nasbench201")])
    seen = visit(path)
    page = seen.page
    assert seen.count(".picture") == 1
    slide(page, 1)
    assert seen.count(".cell-panel") == 1
    names = page.locator(".edge-name").all_text_contents()
    assert names == [
        *("c(k−1) → B1", "c(k−1) → B2", "B1 → B2"),
        *("c(k−1) → B3", "B1 → B3", "B2 → B3"),
    ]
    rows = "elements => elements.map(one => getComputedStyle(one).getPropertyValue('--row'))"
    assert page.locator(".edge").evaluate_all(rows) == ["1", "2", "2", "3", "3", "3"]
    page.locator("[data-edge=normal-5]").click()
    assert page.locator(".tree select").input_value() == "normal-5"
    assert seen.count(".tree select option") == 6


def test_the_keyboard_alone(visit: Any, search_page: Path) -> None:
    seen = visit(search_page)
    page = seen.page
    page.locator("[data-chart=loss]").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(".tooltip:not([hidden])")
    assert "epoch 2 · cycle 1" in seen.text(".tooltip:not([hidden])")
    assert "epoch 2" in page.locator("[role=status]").first.text_content()
    page.keyboard.press("+")
    assert seen.text("[data-where]") != "epochs 1–20 of 20"
    page.keyboard.press("0")
    assert seen.text("[data-where]") == "epochs 1–20 of 20"
    page.locator("[data-series=validation]").first.focus()
    page.keyboard.press("Space")
    assert seen.count("[data-chart=accuracy] .series") == 2
    page.locator("input[type=range]").focus()
    page.keyboard.press("Home")
    assert seen.text("output") == "Cycle 1 of 9"
    page.keyboard.press("ArrowRight")
    assert seen.text("output") == "Cycle 2 of 9"
    page.locator("[data-edge=normal-3]").focus()
    page.keyboard.press("Enter")
    assert page.locator(".tree select").input_value() == "normal-3"
    # Tab reaches every kind of control.
    page.locator("body").click(position={"x": 1, "y": 1})
    kinds: set[str] = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        kinds.add(
            seen.value(
                "document.activeElement.className.baseVal ?? document.activeElement.className"
            )
        )
    assert {"copy", "cycle-button", "tool", "legend-item", "plot"} <= kinds


@pytest.mark.parametrize(("width", "scheme"), [(1400, "dark"), (800, "light"), (390, "dark")])
def test_sizes_and_schemes(visit: Any, search_page: Path, width: int, scheme: str) -> None:
    seen = visit(search_page, width=width, color_scheme=scheme)
    assert seen.value("document.documentElement.scrollWidth") <= width
    slide(seen.page, 2)
    assert seen.value("document.documentElement.scrollWidth") <= width
    back = seen.value("getComputedStyle(document.body).backgroundColor")
    red = int(back.removeprefix("rgb(").split(",")[0])
    assert red < 60 if scheme == "dark" else red > 200
    # Text and ground differ enough to be read (WCAG: 4.5 to 1), also for the faint words.
    for name in ("--ink", "--soft", "--faint", "--accent"):
        assert contrast(seen, name, "--card") >= 4.5, name


def contrast(seen: Any, one: str, other: str) -> float:
    def light(name: str) -> float:
        color = seen.value(f"getComputedStyle(document.documentElement).getPropertyValue('{name}')")
        digits = color.strip().removeprefix("#")
        parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_printed(visit: Any, search_page: Path, tmp_path: Path) -> None:
    seen = visit(search_page, color_scheme="dark")
    seen.page.emulate_media(media="print", color_scheme="dark")
    assert seen.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not seen.page.locator(".copy").first.is_visible()
    assert not seen.page.locator(".timeline").is_visible()
    assert seen.page.locator("[data-chart=accuracy]").is_visible()
    pdf = seen.page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    assert 2 <= pdf.count(b"/Type /Page\n") <= 8


def test_size_and_speed(visit: Any, tmp_path: Path) -> None:
    path = tmp_path / "paper.html"
    write_page(path, [search_view("paper", PAPER)])
    assert path.stat().st_size < 300_000  # a fifth of what it may be
    seen = visit(path)
    assert seen.text("[data-where]") == "epochs 1–100 of 100"
    # The best of some: other work on the machine must not fail this.
    timing = "performance.getEntriesByType('navigation')[0]"
    spent = [seen.value(f"{timing}.domContentLoadedEventEnd - {timing}.responseEnd")]
    for _ in range(2):
        seen.page.reload()
        seen.page.wait_for_selector("body[data-ready]")
        spent.append(seen.value(f"{timing}.domContentLoadedEventEnd - {timing}.responseEnd"))
    assert min(spent) < 1000


def test_a_thousand_epochs_stay_smooth(visit: Any, tmp_path: Path) -> None:
    path = tmp_path / "long.html"
    long = "schedule.cycles=[{epochs: 1000, grace_epochs: 10, morphisms: 0, candidates: 1}]"
    write_page(path, [search_view("long", long)])
    seen = visit(path)
    # Each step draws all charts anew, as zooming does; the best of them, on a busy machine.
    spent = seen.value(
        "(async () => { const more = document.querySelector('[title=\"Zoom in\"]');"
        "const times = [];"
        "for (let i = 0; i < 8; i++) { const began = performance.now(); more.click();"
        "await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));"
        "times.push(performance.now() - began); }"
        "return Math.min(...times); })()"
    )
    assert spent < 100
    seen.page.locator("button:has-text('All')").click()
    shown = "document.querySelector('[data-chart=accuracy] .series path').getAttribute('d')"
    seen.page.wait_for_function(f"() => {shown}.length > 5000")
    width = seen.page.locator("[data-chart=accuracy]").bounding_box()["width"]
    assert seen.value(shown).count("L") <= 4 * width  # at most four points for a column of pixels


def test_hostile_names_do_no_harm(visit: Any, tmp_path: Path) -> None:
    config = quick().to_data()
    nasty = HOSTILE + LONG
    config["description"] = nasty
    config["data"]["name"] = nasty
    config["space"]["name"] = nasty
    session = {**SESSION, "command": ["prnas", nasty], "gpus": [nasty], "started": nasty}
    view = view_of(RunInfo(nasty, f"/runs/{nasty}", config, [session]))
    for record in search_records():
        view.add(record)
    page = tmp_path / "hostile.html"
    write_page(page, [view])
    text = page.read_text(encoding="utf-8")
    assert text.count("<script") == 2  # the data's and the page's own
    assert "\u202e" not in text
    assert_unharmed(visit(page, width=800))

    classes = [nasty, "'\"><b>", "\u202edog"]
    training = training_view(nasty, classes=classes)
    write_page(page, [training])
    assert_unharmed(visit(page, width=800))
    write_page(page, [training, training_view(nasty, 1, classes=classes), view, search_view()])
    assert_unharmed(visit(page, width=800))


def assert_unharmed(seen: Any) -> None:
    assert seen.value("document.body.dataset.hacked") is None
    assert seen.count("img") == 0
    assert seen.count("b") == seen.count("b.fresh-mark, b.child-mark")  # none came from a name
    assert "<script>" in seen.text("#page")  # shown as what it is
    assert "\\u202e" in seen.text("#page")
    assert seen.value("document.documentElement.scrollWidth") <= 800
    head = seen.page.locator("header").bounding_box()
    assert head["height"] < 1500  # ten thousand characters do not push all else away


def test_nothing_is_said_of_epochs_to_come(visit: Any, tmp_path: Path) -> None:
    page = tmp_path / "half.html"
    write_page(page, [search_view("half", cycles=2)])
    seen = visit(page)
    for chart in ("operations-normal", "batch-size", "similarity", "accuracy"):
        seen.page.locator(f"[data-chart={chart}]").focus()
        seen.page.keyboard.press("End")
        box = f"[data-chart-box={chart}] .tooltip"
        seen.expect(box).to_contain_text("epoch 20 ")
        values = seen.page.locator(f"{box} .tip-row b").all_inner_texts()
        assert values
        assert set(values) == {"–"}, chart
        seen.page.keyboard.press("Home")
        seen.expect(box).to_contain_text("epoch 1 ")
        assert set(seen.page.locator(f"{box} .tip-row b").all_inner_texts()) != {"–"}


def test_a_finger_points_and_does_not_zoom(visit: Any, search_page: Path) -> None:
    seen = visit(search_page, width=390, has_touch=True, is_mobile=True)
    page = seen.page
    plot = page.locator("[data-chart=accuracy]")
    plot.scroll_into_view_if_needed()
    plot.tap(position={"x": 200, "y": 100})
    tip = "[data-chart-box=accuracy] .tooltip"
    seen.expect(tip).to_contain_text("epoch")
    page.wait_for_timeout(300)  # long after the finger was lifted
    assert page.locator(tip).is_visible()
    # A finger that goes sideways reads other epochs; the charts stay as wide as they are.
    first = seen.text(tip)
    box = plot.bounding_box()
    session = page.context.new_cdp_session(page)
    for kind, x in (("Start", 100), ("Move", 160), ("Move", 260), ("End", None)):
        points = [] if x is None else [{"x": box["x"] + x, "y": box["y"] + 100}]
        session.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})
    page.wait_for_function(
        f"(told) => document.querySelector('{tip}').innerText !== told", arg=first
    )
    assert seen.text("[data-where]") == "epochs 1–20 of 20"
    page.locator("h2:visible").first.tap()
    seen.expect(tip).to_be_hidden()


def test_a_run_that_has_only_begun(visit: Any, tmp_path: Path) -> None:
    page = tmp_path / "new.html"
    view = view_of(RunInfo("new", "runs/new", quick().to_data(), []))
    write_page(page, [view])
    seen = visit(page)
    assert "0 of 20" in seen.text("header")
    assert "under way" in seen.text("output")
    assert seen.count(".edge") == 28
    assert "prnas watch" in seen.text("header")
    # Neither does a config without anything stop it.
    page.write_text(render(page_data([view_of(RunInfo("bare", "bare"))])), encoding="utf-8")
    assert "bare" in visit(page).text("h1")
    json.dumps(view.data(), allow_nan=False)

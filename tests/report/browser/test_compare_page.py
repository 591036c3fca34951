"""Comparisons, trainings and their confusion in a real browser."""

import re
from pathlib import Path
from typing import Any

import pytest

from prnas.report.page import GroupInfo, write_page
from tests.support.synthetic_runs import NAMES
from tests.support.views import search_view, training_view


def test_two_runs_compared(visit: Any, tmp_path: Path) -> None:
    page = tmp_path / "two.html"
    runs = [search_view("one", genotype=NAMES[2]), search_view("two", genotype=NAMES[3])]
    runs[1].info.config["seed"] = 1
    write_page(page, runs)
    seen = visit(page)
    assert seen.text("h1").split() == ["2", "runs", "finished"]
    results = seen.text(".results")
    assert "n = 2" in results
    # Mean and spread have the same number of digits.
    spreads = re.findall(r"([0-9.,]+) M ± ([0-9.,]+) M", results)
    assert len(spreads) == 2  # parameters and multiply-accumulates
    assert all(len(mean.partition(".")[2]) == len(sd.partition(".")[2]) for mean, sd in spreads)
    assert "not the networks" not in seen.text(".results-section")  # a single config
    assert seen.text(".distances tbody td:has-text('6')").strip() == "6"  # of darts-v1 and -v2
    assert seen.count(".genotypes article") == 2
    assert seen.count(".genotypes .picture") == 4
    seen.expect("[data-chart=search-accuracy-validation] .series").to_have_count(2)
    seen.page.locator("[data-run='1']").click()
    seen.expect("[data-chart=search-accuracy-validation] .series").to_have_count(1)
    seen.expect("[data-chart=search-learning-rate] .series").to_have_count(1)


def test_configs_that_differ(visit: Any, tmp_path: Path) -> None:
    page = tmp_path / "configs.html"
    views = [training_view(f"{group}/seed-{seed}", seed) for group in "ab" for seed in (0, 1)]
    for view in views[2:]:
        view.info.config["training"]["lr"] = 0.5
    views.append(training_view("alone"))
    views[-1].info.config["data"]["name"] = "cifar100"
    write_page(page, views)
    seen = visit(page)
    rows = [row.inner_text().split("\t") for row in seen.page.locator(".results tr").all()]
    assert [row[:2] for row in rows] == [
        ["Run", "Config"],
        *(["a/seed-0", "A"], ["a/seed-1", "A"], ["mean ± sd, n = 2", "A"]),
        *(["b/seed-0", "B"], ["b/seed-1", "B"], ["mean ± sd, n = 2", "B"]),
        ["alone", "C"],
    ]
    assert seen.count("tr.mean") == 2
    strips = seen.page.locator(".seed-plot")
    axes = [one.locator(".tick").all_text_contents() for one in strips.all()]
    assert len(axes) == 2
    assert axes[0] == axes[1]  # they can be compared by eye
    told = [row.inner_text().split("\t") for row in seen.page.locator(".configs tbody tr").all()]
    assert told == [
        ["Runs", "a (2 runs)", "b (2 runs)", "alone"],
        ["Data", "cifar10", "cifar10", "cifar100"],
        ["Network", *["20 cells, 36 channels"] * 3],
        ["Genotype", *["genotype 1"] * 3],
        ["training.lr", "0.025", "0.5", "0.025"],
    ]
    assert seen.page.locator(".confusion-section h2").all_inner_texts() == [
        "Confusion matrix of config A, 2 seeds together",
        "Confusion matrix of config B, 2 seeds together",
        "Confusion matrix of alone",
    ]
    # Lines differ in their dashes as well as in their colours.
    lines = seen.page.locator("[data-chart=training-error-test] .series path")
    assert len({line.get_attribute("stroke-dasharray") for line in lines.all()}) == 5
    # On a phone the result is beside the name, without scrolling.
    seen.page.set_viewport_size({"width": 390, "height": 800})
    cell = seen.page.locator(".results tr.mean td").nth(2).bounding_box()
    assert cell["x"] + cell["width"] <= 390


def test_searches_of_several_configs_do_not_compare_supernets(visit: Any, tmp_path: Path) -> None:
    page = tmp_path / "searches.html"
    views = [search_view("one"), search_view("again"), search_view("two", "weights.lr=0.1")]
    views[1].info.config["seed"] = 1
    write_page(page, views)
    seen = visit(page)
    assert "not the networks of different ones" in seen.text(".results-section")
    headings = seen.page.locator(".results thead th").all_inner_texts()
    assert headings == ["Run", "Config", "Seed", "Parameters", "MACs", "Time"]
    widths = {row.locator("th, td").count() for row in seen.page.locator(".results tr").all()}
    assert widths == {6}
    assert seen.text("tr.mean").split()[:6] == ["mean", "±", "sd,", "n", "=", "2"]
    assert seen.count(".seed-plot") == 0
    assert seen.count("[data-chart^=search-accuracy], [data-chart^=search-loss]") == 0
    # What does compare is there, with a line for each run.
    seen.expect("[data-chart=search-learning-rate] .series").to_have_count(3)
    assert seen.page.locator(".run-keys .legend-name").all_inner_texts() == ["one", "again", "two"]


def test_a_mean_says_how_many_runs_it_is_of(visit: Any, tmp_path: Path) -> None:
    page = tmp_path / "unfinished.html"
    write_page(page, [training_view(f"{i}", i, end=i < 2) for i in range(3)])
    seen = visit(page)
    assert "n = 2 of 3" in seen.text("tr.mean")
    assert "(so far)" in seen.text(".results")
    assert seen.count(".seed-dot") == 2


def test_names_of_runs_stay_apart(visit: Any, tmp_path: Path) -> None:
    page = tmp_path / "same.html"
    write_page(page, [training_view(name) for name in ("run", "run (2)", "run")])
    names = visit(page).page.locator(".run-keys .legend-name").all_inner_texts()
    assert names == ["run", "run (2)", "run (3)"]


def test_trainings_and_their_seeds(visit: Any, tmp_path: Path) -> None:
    page = tmp_path / "training.html"
    write_page(page, [training_view("one")])
    seen = visit(page)
    assert "Test error" in seen.text("header")
    assert "mean of the last 5 epochs" in seen.text("header")
    assert "20 cells, 3 classes" in seen.text("header")
    assert "prnas retrain runs/one runs/one/config.yaml" in seen.text(".commands")
    assert seen.count(".confusion .right") == 3
    assert "cat" in seen.page.locator(".confusion").text_content()
    assert seen.count("[data-chart=error] .series") == 2
    group = GroupInfo("my <i>seeds", "runs/seeds")
    write_page(page, [training_view(f"seed-{seed}", seed) for seed in range(3)], group)
    seen = visit(page)
    assert seen.text("h1").split() == ["my", "<i>seeds", "3", "runs", "finished"]
    assert "n = 3" in seen.text(".results")
    assert seen.count(".seed-dot") == 3
    assert "3 seeds together" in seen.text(".confusion-section h2")


# Every count and its fill: [text's colour, fill, opacity, what is behind].
COUNTS = """(() => {
  const style = (one) => getComputedStyle(one);
  const rects = [...document.querySelectorAll('.confusion .right, .confusion .wrong')];
  const back = style(document.querySelector('.confusion-back')).fill;
  return [...document.querySelectorAll('.confusion .count')].map((text, i) =>
    [style(text).fill, style(rects[i]).fill, Number(style(rects[i]).fillOpacity), back]);
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_counts_can_be_read(visit: Any, tmp_path: Path, scheme: str) -> None:
    page = tmp_path / "confusion.html"
    write_page(page, [training_view("one", classes=[f"{i}" for i in range(10)])])
    dark = scheme != "light"
    seen = visit(page, width=390, color_scheme="dark" if dark else "light")
    if scheme == "print":
        seen.page.emulate_media(media="print")
    found = seen.value(COUNTS)
    assert len(found) > 20
    for text, fill, share, back in found:
        mixed = [
            share * one + (1 - share) * other
            for one, other in zip(rgb(fill), rgb(back), strict=True)
        ]
        assert ratio(rgb(text), mixed) >= 4.5
    assert "true ↓ / taken for →" in seen.page.locator(".confusion").text_content()
    if scheme != "print":  # ten classes with short names fit a phone
        box = seen.page.locator(".confusion").bounding_box()
        assert box["x"] + box["width"] <= 390
    # Long names have the room that they need, and no more.
    write_page(page, [training_view("two", classes=["x" * 16, "cat", "dog"])])
    seen = visit(page)
    left = seen.value(
        "document.querySelector('.confusion').getBoundingClientRect().left"
        " - Math.min(...[...document.querySelectorAll('.confusion text')]"
        ".map((one) => one.getBoundingClientRect().left))"
    )
    assert left <= 1
    assert seen.value("Number(document.querySelector('.confusion-back').getAttribute('x'))") > 90


def rgb(color: str) -> list[float]:
    return [float(one) for one in re.findall(r"[0-9.]+", color)[:3]]


def ratio(one: list[float], other: list[float]) -> float:
    """The contrast of two colours, by the WCAG."""

    def light(parts: list[float]) -> float:
        shares = [part / 255 for part in parts]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)

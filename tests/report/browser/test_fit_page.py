"""The page of a fit in a browser: offline, at a phone's width, by keyboard, whatever names say."""

from pathlib import Path
from typing import Any

import pytest

from prnas.data.dataset import DataSet
from prnas.fitting.page import page_body, write_fit_page
from prnas.fitting.verdict import Trained, compare, sentences
from tests.support.made_data import images
from tests.support.made_fits import NAMES, made_state

NASTY = '<img src=x onerror="document.title=1">'


def made_results() -> dict[str, Any]:
    found = Trained("found", "found by the search", 9, 9, 9, 9, 9.0, 0.9, 0.3, 50, 9, 12, 1.0)
    rows: list[dict[str, Any]] = []
    for name in NAMES:
        row = dict(vars(found)) | {"name": name, "label": f"{name} {NASTY}"}
        rows.append(row | {"accuracy": 0.75, "interval_95": [0.47, 0.91]})
    compared = compare([True] * 9 + [False] * 3, {"zoo": [True] * 12, "plain": [False] * 12})
    wrong = {"index": 1, "name": f"cat/{NASTY}\u202e.png", "class": 0, "taken_for": 1}
    return {
        "best": "found",
        "networks": rows,
        "compared": [vars(each) for each in compared],
        "sentences": sentences([found], found, []),
        "class_names": [NASTY, "a very long name of a class " * 4, "moose"],
        "confusion": [[2, 1, 0], [0, 4, 0], [1, 1, 3]],
        "calibration": {
            "ece": 0.05,
            "bins": [{"low": 0.8, "high": 0.9, "images": 12, "confidence": 0.8, "accuracy": 0.75}],
        },
        "wrong": [{**wrong, "confidence": 0.8, "true_probability": 0.1}],
    }


def write_made_fit(path: Path) -> None:
    data = DataSet("made", images(9), images(12), ("a", "b", "c"))
    write_fit_page(path, made_state(Path("x.npz")), made_results(), data, ["net.py"])


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "a fit" / "fit.html"
    path.parent.mkdir()
    write_made_fit(path)
    return path


def test_it_shows_everything_offline_and_obeys_no_name(page: Path, visit: Any) -> None:
    one = visit(page)
    assert one.requests == [page.resolve().as_uri(), *one.requests[1:]]
    assert all(address.startswith("data:image/png") for address in one.requests[1:])
    assert one.value("document.title") == "a fit · prnas fit"
    assert one.count("img") == 1
    assert one.value("document.querySelector('.gallery img').naturalWidth") > 0
    assert NASTY in one.text(".gallery figcaption")
    assert "80.0 % sure" in one.text(".gallery figcaption")
    assert "\\u202e" in one.text(".gallery .file")
    assert one.count(".networks tbody tr") == 3
    assert one.count("tr.best") == 1
    assert one.count(".matrix tbody tr") == 3
    assert "5.0 %" in one.text("#calibration")
    ids = one.value("[...document.querySelectorAll('nav a')].every(a => "
                    "document.querySelector(a.getAttribute('href')))")  # fmt: skip
    assert ids


def test_on_a_phone_nothing_is_wider_than_the_screen(page: Path, visit: Any) -> None:
    one = visit(page, width=360, height=700)
    assert one.value("document.documentElement.scrollWidth") <= 360


def test_by_keyboard_links_and_wide_tables_are_reached(page: Path, visit: Any) -> None:
    one = visit(page, width=360, height=700)
    reached: set[str] = set()
    for _ in range(30):
        one.page.keyboard.press("Tab")
        here = "document.activeElement"
        reached.add(one.value(f"{here}.getAttribute('aria-label') || {here}.textContent"))
    assert {"data", "calibration", "The networks side by side", "MODEL-CARD.md"} <= reached


def test_a_fit_without_mistakes_says_so() -> None:
    results = made_results() | {"wrong": [], "confusion": [[2, 0, 0], [0, 4, 0], [0, 0, 3]]}
    body = page_body(Path("f"), made_state(Path("x.npz")), results, [], [])
    assert "None of the test images." in body
    assert "No mistakes." in body
    assert "NaN" not in body

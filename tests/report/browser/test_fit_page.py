"""The page of a fit in a browser: offline, at a phone's width, by keyboard, whatever names say."""

from pathlib import Path
from typing import Any

import pytest

from prnas.fitting.page import page_body
from tests.support.made_fits import NASTY, made_results, made_state, write_made_fit


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
    assert "20 epochs in 9 cycles" in one.text("#search")
    assert "normal cell: 3 skip, 5 conv 3x3" in one.text("#search")
    assert "9 of 28 decisions" in one.text("#search")
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


def test_a_fit_of_an_earlier_state_has_a_page() -> None:
    results = made_results()
    del results["search"]
    body = page_body(Path("f"), made_state(Path("x.npz")), results, [""], [])
    assert "Planned for 0.2 of 1 minutes." in body
    assert "How sure" not in body


@pytest.mark.parametrize(
    ("epochs", "seconds", "said"),
    [
        ((40, 60, 90), (100, 110, 119), "each for about the same time."),
        ((40, 60, 90), (60, 90, 150), "same planned time: in fact they took 1.0 to 2.5 minutes."),
        ((120, 150, 200), (9, 9, 5), "a fast network took less: after 200 epochs it ends."),
        ((200, 200, 200), (9, 6, 3), "each for 200 epochs, which are enough."),
    ],
)
def test_how_long_each_was_trained_is_as_it_was(
    epochs: tuple[int, ...], seconds: tuple[float, ...], said: str
) -> None:
    results = made_results()
    for network, number, took in zip(results["networks"], epochs, seconds, strict=True):
        network["epochs"], network["seconds"] = number, took
    assert said in page_body(Path("f"), made_state(Path("x.npz")), results, [""], [])

"""Every kind of page against the rules of axe-core, which npm installs for the tests alone."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prnas.report.page import write_page
from tests.support.made_fits import write_made_fit
from tests.support.made_studies import made_plan, write_study_page
from tests.support.views import search_view, training_view

AXE = Path(__file__).parents[3] / "node_modules" / "axe-core" / "axe.min.js"
NEEDED = "PRNAS_NEED_NPM"  # set: a missing axe-core is a failure, not a skip
# Rules that a page breaks, of those whose breach keeps people out.
BROKEN = """async () => (await axe.run()).violations
  .filter((rule) => ["serious", "critical"].includes(rule.impact))
  .map((rule) => `${rule.id}: ${rule.nodes.map((node) => node.html).slice(0, 3).join(" ")}`)"""


def write_search(path: Path) -> None:
    write_page(path, [search_view(genotype="pr-darts-dl1")])


def write_training(path: Path) -> None:
    write_page(path, [training_view("a training", 0)])


def write_comparison(path: Path) -> None:
    write_page(path, [search_view("one", genotype="darts-v1"), search_view("two")])


def write_study(path: Path) -> None:
    write_study_page(path, made_plan(trainings=2, description="Luck?"))


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.exists():
        reason = "axe-core is missing: npm ci"
        if os.environ.get(NEEDED):
            pytest.fail(f"{reason}, and {NEEDED} is set", pytrace=False)
        pytest.skip(reason)
    return AXE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("write", "width"),
    [
        (write_made_fit, 1400),
        (write_made_fit, 390),
        (write_search, 390),
        (write_training, 1400),
        (write_comparison, 1400),
        (write_study, 390),
    ],
)
def test_no_rule_is_broken_that_keeps_people_out(
    write: Callable[[Path], Any], width: int, visit: Any, tmp_path: Path, axe: str
) -> None:
    path = tmp_path / "page.html"
    write(path)
    seen = visit(path, width=width)
    seen.page.evaluate(axe)
    assert seen.page.evaluate(BROKEN) == []


def test_a_broken_rule_is_found(visit: Any, tmp_path: Path, axe: str) -> None:
    path = tmp_path / "page.html"
    write_search(path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("<html lang=", "<html data-was="), encoding="utf-8")
    seen = visit(path)
    seen.page.evaluate(axe)
    assert any(broken.startswith("html-has-lang: ") for broken in seen.page.evaluate(BROKEN))

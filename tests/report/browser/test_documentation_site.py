"""The documentation site in a browser, from disk: it fits a phone, and its search finds things."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Visit
from tests.support.fences import ROOT

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
MISSING = "[...document.images].filter(image => !image.naturalWidth).map(image => image.src)"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `make docs` builds it."""
    pytest.importorskip("sphinx", reason="the site needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--builder", "html", "--fail-on-warning", "--quiet"]
    trees = ["--doctree-dir", str(folder / "trees")]
    subprocess.run([*command, *trees, str(ROOT / "docs"), str(folder / "html")], check=True)
    return folder / "html"


@pytest.fixture
def reader(browser: Any, request: pytest.FixtureRequest) -> Iterator[Visit]:
    page = browser.new_page(viewport={"width": request.param, "height": 800})
    yield Visit(page)
    page.close()


@pytest.mark.slow
@pytest.mark.parametrize("reader", [1280, 390], indirect=True)
def test_pages_fit_and_the_search_finds(reader: Visit, site: Path) -> None:
    pages = [path for path in sorted(site.rglob("*.html")) if not path.name.startswith("_")]
    assert len(pages) > 40
    for path in pages:
        reader.page.goto(path.as_uri())
        assert reader.value(OVERFLOW) <= 0, path
        assert reader.value(MISSING) == [], path
    for words, found in (
        ("grace epoch", "glossary"),
        ("max-params", "generated/commands/search"),
        ("crop_padding", "generated/config-search"),
        ("McNemar", "fit"),
    ):
        reader.page.goto((site / "search.html").as_uri() + f"?q={words.replace(' ', '+')}")
        reader.expect(f"#search-results a[href*='{found}.html']").not_to_have_count(0)
    assert reader.complaints == []
    assert all(url.startswith(("file:", "data:")) for url in reader.requests)

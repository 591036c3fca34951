"""A real browser: Debian's chromium through Playwright. One for all tests of a process."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import WAIT, Visit, find_chromium, without

Open = Callable[..., Any]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        without("browser tests need Playwright: pip install playwright")
        raise
    with sync_playwright() as playwright:
        try:
            # Without a sandbox: in containers there is none, and the pages are our own. There,
            # shared memory is small as well, and a browser that runs out of it dies.
            found = playwright.chromium.launch(
                executable_path=find_chromium(),
                args=["--no-sandbox", "--disable-dev-shm-usage"],
                timeout=4 * WAIT,
            )
        except Error as error:
            without(f"browser tests need chromium (apt-get install chromium): {error}"[:300])
            raise
        yield found
        found.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Open]:
    """Open an address, or a file from disk without any network."""
    contexts: list[Any] = []
    visits: list[Visit] = []

    def open_(where: str | Path, width: int = 1400, height: int = 900, **options: Any) -> Visit:
        from_disk = isinstance(where, Path)
        context = browser.new_context(
            viewport={"width": width, "height": height}, offline=from_disk, **options
        )
        context.set_default_timeout(2 * WAIT)
        contexts.append(context)
        one = Visit(context.new_page())
        visits.append(one)
        one.page.goto(where.resolve().as_uri() if from_disk else where)
        one.page.wait_for_selector("body[data-ready]")
        return one

    yield open_
    for context in contexts:
        context.close()
    for one in visits:
        assert one.complaints == []

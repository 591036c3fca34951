"""A real browser: Debian's chromium through Playwright. One for all tests of a process."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

NEEDED = "PRNAS_NEED_BROWSER"  # set: a missing browser is a failure, not a skip
WAIT = 30_000  # milliseconds for what must come: the machine may be busy
Open = Callable[..., Any]


def without(reason: str) -> None:
    """Skip, or fail where a browser must be there."""
    if os.environ.get(NEEDED):
        pytest.fail(f"{reason}, and {NEEDED} is set", pytrace=False)
    pytest.skip(reason)


def find_chromium() -> str | None:
    """The system's; `None` is Playwright's own, if that was installed."""
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        if path := shutil.which(name):
            return path
    return None


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


class Visit:
    """A page, and whatever it complained of or asked the network for."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda one: self.complaints.append(f"{one.type}: {one.text}"))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda one: self.requests.append(one.url))

    def count(self, selector: str) -> int:
        return self.page.locator(selector).count()

    def expect(self, selector: str) -> Any:
        """Playwright's assertions about what `selector` finds, which wait for it."""
        from playwright.sync_api import expect

        expect.set_options(timeout=WAIT)
        return expect(self.page.locator(selector))

    def text(self, selector: str) -> str:
        return self.page.locator(selector).first.inner_text()

    def value(self, script: str) -> Any:
        return self.page.evaluate(script)


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

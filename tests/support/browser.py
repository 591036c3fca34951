"""A real browser for tests: where it is, what its lack means, and a page that was opened in it."""

import os
import shutil
from typing import Any

import pytest

NEEDED = "PRNAS_NEED_BROWSER"  # set: a missing browser is a failure, not a skip
WAIT = 30_000  # milliseconds for what must come: the machine may be busy


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

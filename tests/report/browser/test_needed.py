"""Skipping is for people without a browser; where one is demanded, its lack is a failure."""

import pytest

from tests.support.browser import NEEDED, without


def test_a_missing_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NEEDED, raising=False)
    with pytest.raises(pytest.skip.Exception, match="no browser"):
        without("no browser")
    monkeypatch.setenv(NEEDED, "1")
    with pytest.raises(pytest.fail.Exception, match="no browser"):
        without("no browser")

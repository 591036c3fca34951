"""How sure a search is, in a real browser."""

from pathlib import Path
from typing import Any

from prnas.report.page import write_page
from tests.support.made_evidence import measured_view


def test_every_edge_says_how_sure_its_decision_is(visit: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    made, _ = measured_view()
    write_page(path, [made])
    seen = visit(path)
    seen.page.locator("input[type=range]").fill("0")
    assert seen.count(".edge") == seen.count(".decision") == 28
    assert (seen.count(".decision.sure"), seen.count(".decision.against")) == (10, 9)
    assert "+0.0123 ± 0.0040" in seen.text(".decision.sure >> nth=0")
    mark = seen.page.locator(".decision.chance").first
    assert "no better than chance" in mark.get_attribute("title")
    title = seen.page.locator(".candidate").first.get_attribute("title")
    assert "without it the loss rises by +0.0100 ± 0.0020" in title
    assert "its gradient foretells +0.0100 ± 0.0020" in title
    assert "kept beyond chance" in seen.text(".keys")
    assert "How sure" in seen.text("header")
    assert seen.count('.plot[data-chart="certainty"]') == 1

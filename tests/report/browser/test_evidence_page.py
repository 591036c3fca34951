"""How sure a search is, in a real browser."""

from pathlib import Path
from typing import Any

from prnas.report.page import write_page
from prnas.report.search_view import SearchView
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


def test_edges_without_a_comparison_say_why(visit: Any, tmp_path: Path) -> None:
    made, (first, _) = measured_view()
    evidence = first.evidence
    assert evidence is not None
    edges = {**evidence.edges, "normal": [None, None, *evidence.edges["normal"][2:]]}
    uncompared = {"normal": ["rule", "unmeasured", *[None] * 12], "reduction": [None] * 14}
    update = {"edges": edges, "uncompared": uncompared}
    view = SearchView(made.info)
    view.add(first.model_copy(update={"evidence": evidence.model_copy(update=update)}))
    path = tmp_path / "report.html"
    write_page(path, [view])
    seen = visit(path)
    seen.page.locator("input[type=range]").fill("0")
    marks = seen.page.locator(".edge .decision")
    assert marks.all_inner_texts()[:2] == ["by a rule", "not measured"]
    assert "a bound on skips" in marks.first.get_attribute("title")
    assert seen.count(".decision") == 28

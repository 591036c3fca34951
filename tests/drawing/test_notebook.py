"""What notebooks show of genotypes and cells."""

import sys
from xml.etree import ElementTree

import pytest

import prnas
from prnas.drawing.notebook import html_of
from prnas.io.errors import UserError
from prnas.io.frames import frame_of
from tests.support.settings import GENOTYPE201, SMALL_GENOTYPE


@pytest.mark.parametrize("genotype", [SMALL_GENOTYPE, GENOTYPE201], ids=["two", "one"])
def test_cells_show_themselves(genotype: prnas.Genotype) -> None:
    for value in (genotype, genotype.normal):
        root = ElementTree.fromstring(value._repr_svg_())  # noqa: S314 - our own
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
        assert {op.label for op in genotype.normal.operations} <= set(texts)


def test_they_have_a_short_repr() -> None:
    assert repr(SMALL_GENOTYPE.normal) == "Cell(2 nodes: conv 3x3, conv 5x5 d2, max 3x3, skip)"
    assert repr(SMALL_GENOTYPE) == (
        "Genotype(normal: conv 3x3, conv 5x5 d2, max 3x3, skip; "
        "reduction: avg 3x3, conv 1x7 7x1, conv 3x3, skip)"
    )
    assert repr(GENOTYPE201) == "Genotype(normal: 2 conv 3x3, avg 3x3, conv 1x1, skip, zero)"


def test_edges_are_rows() -> None:
    assert SMALL_GENOTYPE.normal.rows() == [
        {"node": 1, "input": 0, "operation": "conv 3x3"},
        {"node": 1, "input": 1, "operation": "skip"},
        {"node": 2, "input": 0, "operation": "max 3x3"},
        {"node": 2, "input": 2, "operation": "conv 5x5 d2"},
    ]
    rows = SMALL_GENOTYPE.rows()
    assert [row["cell"] for row in rows] == ["normal"] * 4 + ["reduction"] * 4
    assert [{key: row[key] for key in row if key != "cell"} for row in rows[4:]] == (
        prnas.Genotype.cell(SMALL_GENOTYPE, "reduction").rows()
    )
    assert [row["node"] for row in GENOTYPE201.rows()] == [1, 2, 2, 3, 3, 3]


def test_without_pandas_there_is_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match="frames need pandas, which is not installed: pip install"):
        SMALL_GENOTYPE.to_pandas()


def test_with_pandas_there_is_a_frame() -> None:
    pytest.importorskip("pandas")
    for value in (SMALL_GENOTYPE, SMALL_GENOTYPE.normal):
        assert value.to_pandas().to_dict("records") == value.rows()
    assert len(frame_of([])) == 0


def test_names_cannot_be_markup() -> None:
    text = html_of("<b>", [("a&b", "<script>\udcff")], None)
    assert "<script>" not in text
    assert "<strong>&lt;b&gt;</strong>" in text
    assert "a&amp;b" in text
    assert text.encode()

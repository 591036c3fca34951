"""Pictures: text metrics, SVG text, and files that are whole or not there."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from prnas.drawing.picture import (
    Box,
    Curve,
    Picture,
    Point,
    Polygon,
    Text,
    placed_text,
    save,
    to_svg,
    transformed,
)
from prnas.drawing.typeface import shortened, text_width
from tests.support.geometry import extent

SVG = "{http://www.w3.org/2000/svg}"
PICTURE = Picture(
    width=120.0,
    height=60.0,
    title="An example",
    items=(
        Curve((Point(10, 10), Point(20, 10), Point(20, 30), Point(30, 30)), "#333333", 1.5, (3, 1)),
        Polygon((Point(30, 30), Point(25, 27), Point(25, 33)), "#333333"),
        Box(40, 20, 60, 20, "#ffeeaa", "#665500", 0.8, 4.0),
        placed_text("conv 3x3 ×[1]", Point(70, 30), 8.0, "#000000"),
    ),
)


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg.encode())  # noqa: S314 - our own text


def test_widths_are_those_of_dejavu_sans() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    font_tools = pytest.importorskip("fontTools.ttLib")
    font = font_tools.TTFont(Path(matplotlib.get_data_path(), "fonts/ttf/DejaVuSans.ttf"))
    glyphs = font.getBestCmap()
    for char in [*map(chr, range(32, 127)), *"×−–—·→…"]:
        assert text_width(char, 2048) == font["hmtx"][glyphs[ord(char)]][0], char


def test_an_unknown_character_counts_as_wide() -> None:
    assert text_width("漢", 10.0) == 10.0


def test_text_is_shortened_to_fit_on_one_line() -> None:
    assert shortened("two\n  words", 10.0, 200.0) == "two words"
    short = shortened("x" * 200, 10.0, 100.0)
    assert short.endswith("…")
    assert 80.0 < text_width(short, 10.0) <= 100.0


def test_placed_text_is_centered() -> None:
    area = extent(placed_text("avg 3x3", Point(50, 20), 10.0, "#000000"))
    assert area.x + area.width / 2 == pytest.approx(50)
    assert area.y < 20 < area.y + area.height


def test_items_move_and_scale() -> None:
    for item in PICTURE.items:
        moved = transformed(item, 3, 4)
        assert moved != item
        assert transformed(moved, -3, -4) == item
        larger = transformed(item, 8, 4, scale=4)
        assert transformed(larger, -2, -1, scale=0.25) == item
        if isinstance(item, Box | Text) and isinstance(larger, Box | Text):
            before, after = extent(item), extent(larger)
            assert after.width == pytest.approx(4 * before.width)
            assert after.x == pytest.approx(4 * before.x + 8)
            assert after.y == pytest.approx(4 * before.y + 4)


@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_a_curve_is_made_of_whole_segments(count: int) -> None:
    with pytest.raises(ValueError, match="3n\\+1 points"):
        Curve((Point(0, 0),) * count, "#000000")


def test_svg_says_what_it_shows_on_white() -> None:
    root = parsed(to_svg(PICTURE))
    assert root.get("viewBox") == "0 0 120 60"
    assert root.findtext(f"{SVG}title") == "An example"
    background = root.find(f"{SVG}rect")
    assert background is not None
    assert background.get("fill") == "#ffffff"
    assert [child.tag.removeprefix(SVG) for child in root][2:] == [
        "path",
        "polygon",
        "rect",
        "text",
    ]


def test_svg_text_keeps_its_width_in_any_font() -> None:
    root = parsed(to_svg(PICTURE))
    text = root.find(f"{SVG}text")
    assert text is not None
    assert text.text == "conv 3x3 ×[1]"
    assert float(text.get("textLength", "")) == pytest.approx(
        text_width("conv 3x3 ×[1]", 8.0), abs=0.01
    )
    assert text.get("lengthAdjust") == "spacingAndGlyphs"


def test_svg_escapes_every_string() -> None:
    hostile = "</text><script>&\"'\x00\ud800"
    picture = Picture(
        50, 20, (Text(0, 10, hostile, 8.0, hostile), Box(0, 0, 1, 1, hostile, hostile)), hostile
    )
    svg = to_svg(picture)
    root = parsed(svg)
    shown = hostile.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")
    assert root.findtext(f"{SVG}title") == shown
    assert root.findtext(f"{SVG}text") == shown
    assert "<script" not in svg


def test_svg_numbers_are_short() -> None:
    svg = to_svg(Picture(10, 10, (Box(-0.001, 1 / 3, 2.0, 2.5, "#000000", "#000000"),)))
    assert '<rect x="0" y="0.33" width="2" height="2.5"' in svg


def test_level_segments_are_lines() -> None:
    points = (Point(0, 5), Point(1, 5), Point(2, 5), Point(9, 5))
    assert 'd="M0 5H9"' in to_svg(Picture(10, 10, (Curve(points, "#000000"),)))


def test_save_svg(tmp_path: Path) -> None:
    save(PICTURE, tmp_path / "a.SVG")
    assert (tmp_path / "a.SVG").read_text(encoding="utf-8") == to_svg(PICTURE)
    assert [path.name for path in tmp_path.iterdir()] == ["a.SVG"]


def test_save_png_in_print_resolution(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    save(PICTURE, tmp_path / "a.png")
    data = (tmp_path / "a.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    width, height = (int.from_bytes(data[i : i + 4], "big") for i in (16, 20))
    assert width >= 120 / 72 * 150
    assert width / height == pytest.approx(2, abs=0.02)


def test_save_pdf_with_its_font_and_without_a_date(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    save(PICTURE, tmp_path / "a.pdf")
    data = (tmp_path / "a.pdf").read_bytes()
    assert data.startswith(b"%PDF")
    assert b"/FontFile2" in data
    assert b"CreationDate" not in data
    save(PICTURE, tmp_path / "b.pdf")
    assert (tmp_path / "b.pdf").read_bytes() == data


def test_the_settings_of_matplotlib_stay_as_they_were(tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    with matplotlib.rc_context({"savefig.bbox": "tight", "pdf.fonttype": 3}):
        save(PICTURE, tmp_path / "a.png")
        assert matplotlib.rcParams["savefig.bbox"] == "tight"
        assert matplotlib.rcParams["pdf.fonttype"] == 3
    save(PICTURE, tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


@pytest.mark.parametrize("name", ["a.gif", "a", ".svg"])
def test_an_unknown_suffix_names_the_valid_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=re.escape(".svg, .png, .pdf")):
        save(PICTURE, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_the_error_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "prnas.drawing.matplotlib_writer", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install matplotlib .*; or write \.svg"):
        save(PICTURE, tmp_path / "a.png")
    save(PICTURE, tmp_path / "a.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    (tmp_path / "a.svg").write_text("old")
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save(PICTURE, tmp_path / "a.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]
    assert (tmp_path / "a.svg").read_text() == "old"


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no such folder.*missing"):
        save(PICTURE, tmp_path / "missing" / "a.svg")


def test_an_svg_needs_no_heavy_import() -> None:
    code = (
        "import sys, prnas.drawing.cells; "
        "sys.exit(any(name in sys.modules for name in ('matplotlib', 'numpy', 'torch')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

"""One table of colours: the page's styles have what drawings and figures have."""

import re
from importlib.resources import files

import pytest

from prnas.drawing.colors import PALETTE, PLAIN, Color, color_of
from prnas.space.operations import CATEGORIES


def style(name: str) -> str:
    return (files("prnas.report") / "assets" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("color", PALETTE, ids=lambda color: color.name)
def test_the_page_has_every_color(color: Color) -> None:
    base = style("base.css")
    assert re.findall(rf"--{color.name}: (#[0-9a-f]+);", base)[0] == color.line
    for sheet, times in ((base, 2), (style("print.css"), 1)):  # light and dark; paper
        for variable in (color.name, f"{color.name}-back"):
            assert len(re.findall(rf"--{variable}: #[0-9a-f]{{6}};", sheet)) == times
    assert f".color-{color.name} {{" in style("cells.css")


def test_categories_differ_in_their_colors() -> None:
    lines = [color_of(category).line for category in CATEGORIES]
    assert len(set(lines)) == min(len(CATEGORIES), len(PALETTE))
    fills = [color.paint.fill for color in PALETTE if color.paint is not PLAIN]
    assert len(set(fills)) == len(fills)

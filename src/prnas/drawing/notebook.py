"""Values as notebooks show them: cells as SVG, results as facts with their cells below."""

from collections.abc import Iterable
from html import escape

from prnas.drawing.cells import draw_cell, draw_genotype
from prnas.drawing.picture import to_svg
from prnas.space.genotype import Cell, Genotype


def svg_of(value: Genotype | Cell) -> str:
    """The cells as an SVG element, without the declaration that a file begins with."""
    picture = draw_genotype(value) if isinstance(value, Genotype) else draw_cell(value)
    text = to_svg(picture)
    return text[text.index("<svg") :]


def html_of(title: str, facts: Iterable[tuple[str, str]], genotype: Genotype | None) -> str:
    """A title, a table of facts and the cells. All texts are escaped."""
    rows = "".join(
        f'<tr><th style="text-align:left">{_text(name)}</th>'
        f'<td style="text-align:left">{_text(value)}</td></tr>'
        for name, value in facts
    )
    cells = "" if genotype is None else svg_of(genotype)
    return f"<div><strong>{_text(title)}</strong><table>{rows}</table>{cells}</div>"


def _text(text: str) -> str:
    """Escaped, and without what no page can hold."""
    return escape(text.encode(errors="backslashreplace").decode())

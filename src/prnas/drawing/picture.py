"""Pictures that no backend owns: boxes, texts and curves, and how they become files."""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from prnas.io.atomic import write_output

SUFFIXES = (".svg", ".png", ".pdf")
FONT_FAMILIES = "DejaVu Sans, Verdana, sans-serif"

# Advance widths of DejaVu Sans in 1/2048 em, from the space to the tilde.
_ASCII_WIDTHS = (
    *(651, 821, 942, 1716, 1303, 1946, 1597, 563, 799, 799, 1024, 1716, 651, 739, 651, 690),
    *(1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 690, 690, 1716, 1716, 1716),
    *(1087, 2048, 1401, 1405, 1430, 1577, 1294, 1178, 1587, 1540, 604, 604, 1343, 1141, 1767),
    *(1532, 1612, 1235, 1612, 1423, 1300, 1251, 1499, 1401, 2025, 1403, 1251, 1403, 799, 690),
    *(799, 1716, 1024, 1024, 1255, 1300, 1126, 1300, 1260, 721, 1300, 1298, 569, 569, 1186),
    *(569, 1995, 1298, 1253, 1300, 1300, 842, 1067, 803, 1298, 1212, 1675, 1212, 1212, 1075),
    *(1303, 690, 1303, 1716),
)
_OTHER_WIDTHS = {
    "\N{MULTIPLICATION SIGN}": 1716,
    "\N{MINUS SIGN}": 1716,
    "\N{EN DASH}": 1024,
    "\N{EM DASH}": 2048,
    "\N{MIDDLE DOT}": 651,
    "\N{RIGHTWARDS ARROW}": 1716,
    "\N{HORIZONTAL ELLIPSIS}": 2048,
}
_UNKNOWN_WIDTH = 2048  # rather too wide than over the edge of its box
_UNITS_PER_EM = 2048
_ASCENT, _DESCENT = 0.77, 0.22  # of letters, brackets and digits, in em
_HALF_CAPITAL = 0.365  # a baseline this far below the middle centres capitals and digits


class Point(NamedTuple):
    x: float
    y: float


class Rectangle(NamedTuple):
    x: float
    y: float
    width: float
    height: float


def text_width(text: str, size: float) -> float:
    """How wide `text` is in DejaVu Sans of `size` points."""
    units = sum(
        _ASCII_WIDTHS[ord(char) - ord(" ")]
        if " " <= char <= "~"
        else _OTHER_WIDTHS.get(char, _UNKNOWN_WIDTH)
        for char in text
    )
    return units * size / _UNITS_PER_EM


def shortened(text: str, size: float, width: float) -> str:
    """`text` on one line, cut with an ellipsis where it would be wider than `width`."""
    line = " ".join(text.split())
    if text_width(line, size) <= width:
        return line
    while line and text_width(line + "…", size) > width:
        line = line[:-1]
    return line + "…"


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle with rounded corners."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    stroke: str
    stroke_width: float = 1.0
    radius: float = 0.0

    @property
    def extent(self) -> Rectangle:
        return Rectangle(self.x, self.y, self.width, self.height)

    def moved(self, dx: float, dy: float) -> "Box":
        return replace(self, x=self.x + dx, y=self.y + dy)


@dataclass(frozen=True, slots=True)
class Text:
    """One line of text that starts at `x` on `baseline`."""

    x: float
    baseline: float
    text: str
    size: float
    color: str

    @property
    def width(self) -> float:
        return text_width(self.text, self.size)

    @property
    def extent(self) -> Rectangle:
        top = self.baseline - _ASCENT * self.size
        return Rectangle(self.x, top, self.width, (_ASCENT + _DESCENT) * self.size)

    def moved(self, dx: float, dy: float) -> "Text":
        return replace(self, x=self.x + dx, baseline=self.baseline + dy)


@dataclass(frozen=True, slots=True)
class Curve:
    """Cubic Bezier segments end to end: a start, then two controls and an end for each."""

    points: tuple[Point, ...]
    stroke: str
    width: float = 1.0
    dash: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.points) < 4 or len(self.points) % 3 != 1:
            raise ValueError(f"a curve has 3n+1 points, n >= 1, got {len(self.points)}")

    @property
    def segments(self) -> Iterator[tuple[Point, Point, Point, Point]]:
        for i in range(0, len(self.points) - 1, 3):
            start, first, second, end = self.points[i : i + 4]
            yield start, first, second, end

    def moved(self, dx: float, dy: float) -> "Curve":
        return replace(self, points=_moved(self.points, dx, dy))


@dataclass(frozen=True, slots=True)
class Polygon:
    """A filled polygon, such as the head of an arrow."""

    points: tuple[Point, ...]
    fill: str

    def moved(self, dx: float, dy: float) -> "Polygon":
        return replace(self, points=_moved(self.points, dx, dy))


Item = Box | Text | Curve | Polygon


@dataclass(frozen=True, slots=True)
class Picture:
    """Items on white, painted in their order; x grows to the right and y downwards, in points."""

    width: float
    height: float
    items: tuple[Item, ...]
    title: str = ""


def _moved(points: Iterable[Point], dx: float, dy: float) -> tuple[Point, ...]:
    return tuple(Point(x + dx, y + dy) for x, y in points)


def baseline_for(middle: float, size: float) -> float:
    """The baseline of a text whose capitals and digits are centred on `middle`."""
    return middle + _HALF_CAPITAL * size


def centered_text(text: str, middle: Point, size: float, color: str) -> Text:
    x = middle.x - text_width(text, size) / 2
    return Text(x, baseline_for(middle.y, size), text, size, color)


def to_svg(picture: Picture) -> str:
    """The picture as an SVG document, the same text for the same picture."""
    width, height = _number(picture.width), _number(picture.height)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}pt" height="{height}pt" '
        f'viewBox="0 0 {width} {height}" role="img" font-family="{FONT_FAMILIES}">'
    )
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', head]
    lines.append(f"<title>{_escaped(picture.title)}</title>")
    lines.append('<rect width="100%" height="100%" fill="#ffffff"/>')
    lines.extend(_svg_element(item) for item in picture.items)
    lines.append("</svg>")
    return "\n".join(lines) + "\n"


def _svg_element(item: Item) -> str:
    match item:
        case Box():
            attributes = {
                "x": item.x,
                "y": item.y,
                "width": item.width,
                "height": item.height,
                "rx": item.radius,
                "fill": item.fill,
                "stroke": item.stroke,
                "stroke-width": item.stroke_width,
            }
            return f"<rect{_attributes(attributes)}/>"
        case Text():
            attributes = {
                "x": item.x,
                "y": item.baseline,
                "font-size": item.size,
                "fill": item.color,
                # With another font the text still takes the room that the layout gave it.
                "textLength": item.width,
                "lengthAdjust": "spacingAndGlyphs",
            }
            return f"<text{_attributes(attributes)}>{_escaped(item.text)}</text>"
        case Curve():
            attributes = {
                "d": _svg_path(item),
                "fill": "none",
                "stroke": item.stroke,
                "stroke-width": item.width,
            }
            if item.dash:
                attributes["stroke-dasharray"] = " ".join(map(_number, item.dash))
            return f"<path{_attributes(attributes)}/>"
        case Polygon():
            points = " ".join(f"{_number(x)},{_number(y)}" for x, y in item.points)
            return f"<polygon{_attributes({'points': points, 'fill': item.fill})}/>"


def _svg_path(curve: Curve) -> str:
    x, y = curve.points[0]
    parts = [f"M{_number(x)} {_number(y)}"]
    for start, first, second, end in curve.segments:
        if start.y == first.y == second.y == end.y:
            parts.append(f"H{_number(end.x)}")
        else:
            numbers = (_number(value) for point in (first, second, end) for value in point)
            parts.append("C" + " ".join(numbers))
    return "".join(parts)


def _attributes(values: dict[str, Any]) -> str:
    return "".join(
        f' {name}="{_escaped(value) if isinstance(value, str) else _number(value)}"'
        for name, value in values.items()
    )


def _number(value: float) -> str:
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


# What XML 1.0 cannot hold, even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


def printable(text: str) -> str:
    """`text` with a mark for every character that no file format of ours can hold."""
    return _NOT_XML.sub("\ufffd", text)


def _escaped(text: str) -> str:
    return printable(text).translate(_ENTITIES)


def save(picture: Picture, path: str | os.PathLike[str]) -> None:
    """Write the picture to `path`, whose suffix says how: `.svg`, `.png` or `.pdf`.

    The file appears whole or not at all. PNG and PDF need matplotlib.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        valid = ", ".join(SUFFIXES)
        raise ValueError(f"cannot draw to {target.name!r}: the file name must end in {valid}")
    if suffix == ".svg":
        data = to_svg(picture).encode()
    else:
        data = _by_matplotlib(picture, suffix.removeprefix("."))
    write_output(target, data)


def _by_matplotlib(picture: Picture, file_format: str) -> bytes:
    try:
        # Only here: matplotlib takes longer to import than an SVG to draw.
        from prnas.drawing.matplotlib_writer import to_bytes
    except ImportError as error:
        raise ImportError(
            "PNG and PDF need matplotlib: pip install 'prnas[figures]', or write .svg"
        ) from error
    return to_bytes(picture, file_format)

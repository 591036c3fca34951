"""Pictures that no backend owns: boxes, texts and curves, and how they become files."""

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from prnas.drawing.typeface import text_width
from prnas.io.atomic import write_output
from prnas.io.extras import how_to_install

SUFFIXES = (".svg", ".png", ".pdf")
FONT_FAMILIES = "DejaVu Sans, Verdana, sans-serif"

_HALF_CAPITAL = 0.365  # a baseline this far below the middle centres capitals and digits


class Point(NamedTuple):
    x: float
    y: float


class Rectangle(NamedTuple):
    x: float
    y: float
    width: float
    height: float


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


@dataclass(frozen=True, slots=True)
class Polygon:
    """A filled polygon, such as the head of an arrow."""

    points: tuple[Point, ...]
    fill: str


Item = Box | Text | Curve | Polygon


@dataclass(frozen=True, slots=True)
class Picture:
    """Items on white, painted in their order; x grows to the right and y downwards, in points."""

    width: float
    height: float
    items: tuple[Item, ...]
    title: str = ""


def transformed(item: Item, dx: float = 0.0, dy: float = 0.0, scale: float = 1.0) -> Item:
    """The item, scaled about (0, 0) and then moved; the borders of boxes stay as wide."""
    match item:
        case Box():
            size = {"width": item.width * scale, "height": item.height * scale}
            x, y, radius = item.x * scale + dx, item.y * scale + dy, item.radius * scale
            return replace(item, x=x, y=y, radius=radius, **size)
        case Text():
            x, baseline = item.x * scale + dx, item.baseline * scale + dy
            return replace(item, x=x, baseline=baseline, size=item.size * scale)
        case Curve() | Polygon():
            points = tuple(Point(x * scale + dx, y * scale + dy) for x, y in item.points)
            if isinstance(item, Curve):
                return replace(item, points=points, width=item.width * scale)
            return replace(item, points=points)


def placed_text(text: str, at: Point, size: float, color: str, align: float = 0.5) -> Text:
    """Text at the height of `at` that begins there (`align` 0), is centred (0.5) or ends (1)."""
    x = at.x - align * text_width(text, size)
    return Text(x, at.y + _HALF_CAPITAL * size, text, size, color)


def to_svg(picture: Picture) -> str:
    """The picture as an SVG document, the same text for the same picture."""
    width, height = _number(picture.width), _number(picture.height)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}pt" height="{height}pt" '
        f'viewBox="0 0 {width} {height}" role="img" font-family="{FONT_FAMILIES}">'
    )
    title = f"<title>{_escaped(picture.title)}</title>"
    paper = '<rect width="100%" height="100%" fill="#ffffff"/>'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', head, title, paper]
    return "\n".join([*lines, *map(_svg_element, picture.items), "</svg>", ""])


def _svg_element(item: Item) -> str:
    match item:
        case Box():
            extent = {"x": item.x, "y": item.y, "width": item.width, "height": item.height}
            stroke = {"stroke": item.stroke, "stroke-width": item.stroke_width}
            return _element("rect", {**extent, "rx": item.radius, "fill": item.fill, **stroke})
        case Text():
            style = {"x": item.x, "y": item.baseline, "font-size": item.size, "fill": item.color}
            # With another font the text still takes the room that the layout gave it.
            fitted = {"textLength": item.width, "lengthAdjust": "spacingAndGlyphs"}
            return _element("text", {**style, **fitted}, item.text)
        case Curve():
            stroke = {"fill": "none", "stroke": item.stroke, "stroke-width": item.width}
            dash = {"stroke-dasharray": " ".join(map(_number, item.dash))} if item.dash else {}
            return _element("path", {"d": _svg_path(item), **stroke, **dash})
        case Polygon():
            points = " ".join(f"{_number(x)},{_number(y)}" for x, y in item.points)
            return _element("polygon", {"points": points, "fill": item.fill})


def _svg_path(curve: Curve) -> str:
    x, y = curve.points[0]
    commands = [f"M{_number(x)} {_number(y)}"]
    for i in range(0, len(curve.points) - 1, 3):
        start, *rest = curve.points[i : i + 4]
        if all(point.y == start.y for point in rest):
            commands.append(f"H{_number(rest[-1].x)}")
        else:
            commands.append("C" + " ".join(_number(value) for point in rest for value in point))
    return "".join(commands)


def _element(name: str, attributes: dict[str, Any], text: str | None = None) -> str:
    words = "".join(
        f' {key}="{_escaped(value) if isinstance(value, str) else _number(value)}"'
        for key, value in attributes.items()
    )
    return f"<{name}{words}/>" if text is None else f"<{name}{words}>{_escaped(text)}</{name}>"


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
    """Write a file, whole or not at all: `.svg`, `.png` or `.pdf`, as the path's suffix says."""
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        valid = ", ".join(SUFFIXES)
        raise ValueError(f"cannot draw to {target.name!r}: the file name must end in {valid}")
    if suffix == ".svg":
        write_output(target, to_svg(picture).encode())
        return
    try:
        # Only here: matplotlib takes longer to import than an SVG to draw.
        from prnas.drawing.matplotlib_writer import to_bytes
    except ImportError as error:
        raise ImportError(
            f"PNG and PDF need matplotlib: {how_to_install('figures')}; or write .svg"
        ) from error
    write_output(target, to_bytes(picture, suffix.removeprefix(".")))

"""Pictures as plain data, which the page turns into SVG in its own colours, light or dark."""

from typing import Any

from prnas.drawing.cells import draw_cell
from prnas.drawing.picture import Box, Curve, Picture, Polygon, Text
from prnas.space.genotype import Cell


def cell_picture(cell: Cell) -> dict[str, Any]:
    return picture_data(draw_cell(cell))


def picture_data(picture: Picture) -> dict[str, Any]:
    """[kind, geometry…, colours…] of every item, in painting order."""
    items: list[list[Any]] = []
    for item in picture.items:
        match item:
            case Box():
                place = _short(item.x, item.y, item.width, item.height, item.radius)
                items.append(["box", *place, item.fill, item.stroke])
            case Text():
                place = _short(item.x, item.baseline, item.width, item.size)
                items.append(["text", *place, item.text])
            case Curve():
                points = _short(*(value for point in item.points for value in point))
                items.append(["curve", item.stroke, *_short(item.width), points])
            case Polygon():
                points = _short(*(value for point in item.points for value in point))
                items.append(["polygon", item.fill, points])
    return {"size": _short(picture.width, picture.height), "items": items}


def _short(*values: float) -> list[float]:
    return [round(value, 1) for value in values]

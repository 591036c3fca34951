"""Pictures as plain data, which the page turns into SVG in its own colours, light or dark."""

from typing import Any

from prnas.drawing.cells import CONCAT_LINE, draw_cell
from prnas.drawing.colors import INPUT, NODE, OUTPUT, PALETTE, PLAIN
from prnas.drawing.picture import Box, Curve, Picture, Polygon, Text
from prnas.space.genotype import Cell

# The page's classes of what a drawing has in these colours.
_CLASSES = {
    **{color.paint.fill: f"color-{color.name}" for color in PALETTE if color.paint is not PLAIN},
    **{INPUT.fill: "paint-input", NODE.fill: "paint-node", OUTPUT.fill: "paint-output"},
    CONCAT_LINE: "concat",
}


def cell_picture(cell: Cell) -> dict[str, Any]:
    return picture_data(draw_cell(cell))


def picture_data(picture: Picture) -> dict[str, Any]:
    """[kind, geometry…, class or text] of every item, in painting order."""
    items: list[list[Any]] = []
    for item in picture.items:
        match item:
            case Box():
                place = _short(item.x, item.y, item.width, item.height, item.radius)
                items.append(["box", *place, _CLASSES.get(item.fill, "")])
            case Text():
                place = _short(item.x, item.baseline, item.width, item.size)
                items.append(["text", *place, item.text])
            case Curve():
                points = _short(*(value for point in item.points for value in point))
                items.append(["curve", *_short(item.width), points, _CLASSES.get(item.stroke, "")])
            case Polygon():
                points = _short(*(value for point in item.points for value in point))
                items.append(["polygon", points, _CLASSES.get(item.fill, "")])
    return {"size": _short(picture.width, picture.height), "items": items}


def _short(*values: float) -> list[float]:
    return [round(value, 1) for value in values]

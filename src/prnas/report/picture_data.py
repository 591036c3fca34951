"""Pictures as plain data, which the page turns into SVG in its own colours, light or dark."""

from itertools import chain
from typing import Any

from prnas.drawing.cells import CONCAT_LINE, draw_cell
from prnas.drawing.colors import INPUT, NODE, OUTPUT, PALETTE, PLAIN
from prnas.drawing.picture import Box, Curve, Picture, Polygon, Text
from prnas.space.genotype import ROLES, Genotype, Role

# The page's classes of what a drawing has in these colours.
_CLASSES = {
    **{color.paint.fill: f"color-{color.name}" for color in PALETTE if color.paint is not PLAIN},
    **{INPUT.fill: "paint-input", NODE.fill: "paint-node", OUTPUT.fill: "paint-output"},
    CONCAT_LINE: "concat",
}


def cell_pictures(genotype: Genotype) -> dict[Role, dict[str, Any]]:
    return {role: _picture_data(draw_cell(genotype.cell(role))) for role in ROLES}


def _picture_data(picture: Picture) -> dict[str, Any]:
    """[kind, geometry…, class or text] of every item, in painting order."""
    items: list[list[Any]] = []
    for item in picture.items:
        match item:
            case Box():
                box = _short(item.x, item.y, item.width, item.height, item.radius)
                items.append(["box", *box, _CLASSES.get(item.fill, "")])
            case Text():
                line = _short(item.x, item.baseline, item.width, item.size)
                items.append(["text", *line, item.text])
            case Curve():
                points = _short(*chain(*item.points))
                items.append(["curve", *_short(item.width), points, _CLASSES.get(item.stroke, "")])
            case Polygon():
                points = _short(*chain(*item.points))
                items.append(["polygon", points, _CLASSES.get(item.fill, "")])
    return {"size": _short(picture.width, picture.height), "items": items}


def _short(*values: float) -> list[float]:
    return [round(value, 1) for value in values]

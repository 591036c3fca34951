"""The colours of operations by category: one table for drawings, charts and the page."""

from typing import NamedTuple

from prnas.space.operations import CATEGORIES


class Paint(NamedTuple):
    """The colours of a box."""

    fill: str
    stroke: str


class Color(NamedTuple):
    """A colour by the name that it has in the page's styles, where it is light or dark."""

    name: str
    line: str  # colour of lines in charts on white
    paint: Paint  # colours of boxes in drawings


# Light fills, so that dark text reads on all of them, of hues that the colour-blind tell apart.
INPUT = Paint("#e4e9ee", "#5f6f7f")
NODE = Paint("#9cc9f2", "#1f5f9e")
OUTPUT = Paint("#fdb863", "#b35806")
PLAIN = Paint("#ffffff", "#8c8c8c")

# Okabe and Ito's colours, which the colour-blind can tell apart. The categories of operations take
# them in this order: conv, pool, skip, zero, then those of one's own.
PALETTE = (
    Color("orange", "#d99000", Paint("#fff3b8", "#a68a00")),
    Color("purple", "#b8639a", Paint("#dccdf0", "#6a4c9c")),
    Color("green", "#009e73", PLAIN),
    Color("gray", "#7d868e", PLAIN),
    Color("sky", "#4aa8de", Paint("#d9f2fc", "#2b7fb0")),
    Color("red", "#d55e00", Paint("#fbdccb", "#a34a06")),
    Color("blue", "#0072b2", Paint("#d5e3f5", "#14568c")),
)


def color_of(category: str) -> Color:
    """The colour of a category; when there are more of them than colours, some share one."""
    return PALETTE[CATEGORIES.index(category) % len(PALETTE)]

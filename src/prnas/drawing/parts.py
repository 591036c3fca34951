"""Parts that drawings share: their sizes, panels, labelled boxes, arrows."""

from collections.abc import Sequence
from dataclasses import dataclass

from prnas.drawing.colors import Paint
from prnas.drawing.layout import Size
from prnas.drawing.picture import (
    Box,
    Curve,
    Item,
    Picture,
    Point,
    Polygon,
    Rectangle,
    Text,
    baseline_for,
    centered_text,
    shortened,
    text_width,
    transformed,
)
from prnas.space.operations import Operation

MARGIN = 14.0
INK = "#1a1a1a"
LABEL_SIZE, STATE_SIZE, CAPTION_SIZE, TITLE_SIZE = 9.5, 10.5, 12.0, 14.0
WIDEST_LABEL = 220.0
WIDEST_TITLE = 480.0


@dataclass(frozen=True, slots=True)
class Panel:
    """Items that begin at (0, 0), and the room that they take."""

    width: float
    height: float
    items: tuple[Item, ...]

    def moved(self, dx: float, dy: float) -> tuple[Item, ...]:
        return tuple(transformed(item, dx, dy) for item in self.items)


def stacked(panels: Sequence[Panel], gap: float) -> Panel:
    """Panels one below the other, centred."""
    width, y = max(panel.width for panel in panels), 0.0
    items: list[Item] = []
    for panel in panels:
        items += panel.moved((width - panel.width) / 2, y)
        y += panel.height + gap
    return Panel(width, y - gap, tuple(items))


def captioned(panel: Panel, caption: str, size: float = CAPTION_SIZE) -> Panel:
    """A panel with a centred line above it."""
    width = max(panel.width, text_width(caption, size))
    text = centered_text(caption, Point(width / 2, size / 2), size, INK)
    y = 2.0 * size
    items = (text, *panel.moved((width - panel.width) / 2, y))
    return Panel(width, panel.height + y, items)


def finished(panel: Panel, title: str | None, description: str) -> Picture:
    if title is not None and title.strip():
        line = shortened(title, TITLE_SIZE, max(panel.width, WIDEST_TITLE))
        panel = captioned(panel, line, TITLE_SIZE)
        description = f"{title}: {description}"
    size = panel.width + 2 * MARGIN, panel.height + 2 * MARGIN
    return Picture(*size, panel.moved(MARGIN, MARGIN), description)


def label_of(operation: Operation) -> str:
    return shortened(operation.label, LABEL_SIZE, WIDEST_LABEL)


def label_size(label: str) -> Size:
    return Size(text_width(label, LABEL_SIZE) + 12.0, 18.0)


def labelled_box(
    box: Rectangle, label: str, paint: Paint, size: float = LABEL_SIZE, radius: float = 4.0
) -> list[Item]:
    middle = Point(box.x + box.width / 2, box.y + box.height / 2)
    text = centered_text(label, middle, size, INK)
    return [Box(*box, paint.fill, paint.stroke, 0.8, radius), text]


def box_with_subscript(box: Rectangle, paint: Paint, label: str, subscript: str) -> list[Item]:
    large, small = STATE_SIZE + 1, STATE_SIZE - 2.5
    left = text_width(label, large) + 0.5
    x = box.x + (box.width - left - text_width(subscript, small)) / 2
    baseline = baseline_for(box.y + box.height / 2, large) - 1.5
    return [
        Box(*box, paint.fill, paint.stroke, 0.8, 5.0),
        Text(x, baseline, label, large, INK),
        Text(x + left, baseline + 3.0, subscript, small, INK),
    ]


def line(points: tuple[Point, ...], color: str, width: float, arrow: bool) -> list[Item]:
    if not arrow:
        return [Curve(points, color, width)]
    tip = points[-1]
    length, half = 5.5, 2.4
    base = tip.x - length
    # The line ends under the head, or it would stick out beside the tip.
    shaft = (*points[:-2], Point(base + 1, tip.y), Point(base + 1, tip.y))
    head = (tip, Point(base, tip.y - half), Point(base, tip.y + half))
    return [Curve(shaft, color, width), Polygon(head, color)]

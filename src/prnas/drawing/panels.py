"""Panels of drawings, and the sizes of their texts."""

from collections.abc import Sequence
from dataclasses import dataclass

from prnas.drawing.picture import Item, Picture, Point, placed_text, transformed
from prnas.drawing.typeface import shortened, text_width

MARGIN = 14.0
INK = "#1a1a1a"
LABEL_SIZE, CAPTION_SIZE, TITLE_SIZE = 9.5, 12.0, 14.0
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
    text = placed_text(caption, Point(width / 2, size / 2), size, INK)
    items = panel.moved((width - panel.width) / 2, 2.0 * size)
    return Panel(width, panel.height + 2.0 * size, (text, *items))


def finished(panel: Panel, title: str | None, description: str) -> Picture:
    if title is not None and title.strip():
        line = shortened(title, TITLE_SIZE, max(panel.width, WIDEST_TITLE))
        panel = captioned(panel, line, TITLE_SIZE)
        description = f"{title}: {description}"
    size = panel.width + 2 * MARGIN, panel.height + 2 * MARGIN
    return Picture(*size, panel.moved(MARGIN, MARGIN), description)

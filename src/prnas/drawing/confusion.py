"""A confusion matrix as a picture: what a model takes the images of each class for."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from prnas.drawing.panels import CAPTION_SIZE, INK, LABEL_SIZE, Panel, finished
from prnas.drawing.picture import Box, Curve, Item, Picture, Point, placed_text
from prnas.drawing.typeface import shortened, text_width

MOST_CLASSES = 100  # more are unreadable: those with the most mistakes are shown
MOST_WITH_NUMBERS = 20  # classes whose cells have room for percentages
WIDEST_NAME, WIDEST_CELL = 130.0, 60.0
GAP = 6.0
NONE = "none"  # neither filled nor stroked
GUIDE, FRAME, EMPTY, FAINT = "#ececec", "#8c8c8c", "#f4f4f4", "#5a5a5a"

# From light to dark, so that lightness alone tells; blue and orange, so that no colour-blind eye
# takes one for the other. Position tells too: what is right is on the diagonal.
RIGHT = ("#ffffff", "#c6dbef", "#6baed6", "#2171b5", "#08306b")
WRONG = ("#ffffff", "#fdd0a2", "#fd8d3c", "#d94801", "#7f2704")
RIGHT_KEY = (0.25, 0.5, 0.75, 0.9, 1.0)
WRONG_KEY = (0.01, 0.05, 0.1, 0.25, 0.5)
_ending_at = partial(placed_text, align=1.0)


@dataclass(frozen=True, slots=True)
class _Grid:
    """Sizes of a matrix of `number` classes; its upper left corner is (left, top)."""

    number: int
    width: float  # width of a cell
    height: float
    left: float
    top: float

    @property
    def right(self) -> float:
        return self.left + self.number * self.width

    @property
    def bottom(self) -> float:
        return self.top + self.number * self.height

    @property
    def label_size(self) -> float:
        return min(LABEL_SIZE, 0.8 * self.height)

    def middle(self, row: int, column: int) -> Point:
        return Point(self.left + (column + 0.5) * self.width, self.top + (row + 0.5) * self.height)


def draw_confusion(
    counts: Sequence[Sequence[int]], class_names: Sequence[str], title: str | None = None
) -> Picture:
    """Rows are true classes, columns what they were taken for, in the same order.

    Every cell is the share of its row's images: blue on the diagonal, where they are right, orange
    elsewhere. Up to 20 classes have percentages in their cells. Of more than 100 classes, the 100
    with the most mistakes are shown.
    """
    number = len(class_names)
    if len(counts) != number or any(len(row) != number for row in counts):
        raise ValueError(f"{number} classes need {number} x {number} counts")
    if not number:
        raise ValueError("there are no classes to draw")
    shown = _shown(counts)
    totals = [sum(counts[row]) for row in shown]
    shares = [
        [counts[row][column] / total if total else 0.0 for column in shown]
        for row, total in zip(shown, totals, strict=True)
    ]
    body = _matrix(shares, totals, [class_names[index] for index in shown])
    if len(shown) < number:
        note = f"the {len(shown)} of {number:,} classes with the most mistakes"
        text = placed_text(note, Point(0.0, body.height + 8.0), LABEL_SIZE, FAINT, align=0.0)
        body = Panel(max(body.width, text.width), body.height + 16.0, (*body.items, text))
    return finished(body, title, "what the images of each class (row) were taken for (column)")


def _shown(counts: Sequence[Sequence[int]]) -> list[int]:
    """The classes to draw, in their own order."""
    if len(counts) <= MOST_CLASSES:
        return list(range(len(counts)))
    columns = [sum(column) for column in zip(*counts, strict=True)]
    mistakes = [sum(row) + columns[index] - 2 * row[index] for index, row in enumerate(counts)]
    worst = sorted(range(len(counts)), key=lambda index: (-mistakes[index], index))
    return sorted(worst[:MOST_CLASSES])


def _matrix(shares: list[list[float]], totals: list[int], names: list[str]) -> Panel:
    number = len(names)
    with_numbers = number <= MOST_WITH_NUMBERS
    # The more classes, the smaller the cells, and the larger the picture.
    sizes = {12: (40.0, 28.0), MOST_WITH_NUMBERS: (30.0, 24.0), 40: (13.0, 13.0)}
    width, height = next((size for most, size in sizes.items() if number <= most), (9.0, 9.0))
    size = min(LABEL_SIZE, 0.8 * height)
    labels = [shortened(name, size, WIDEST_NAME) for name in names]
    across = max(text_width(label, size) for label in labels)
    # Columns have numbers where names are too wide for them; rows tell which is which.
    named = with_numbers and across + 4.0 <= WIDEST_CELL
    if named:
        width = max(width, across + 4.0)
    numbers = [] if named else [str(index) for index in range(number)]
    keys = max((text_width(text, size) for text in numbers), default=-GAP)
    left = max(across + keys + GAP, text_width("true class", LABEL_SIZE)) + GAP
    grid = _Grid(number, width, height, left, 2.0 * CAPTION_SIZE + 8.0)
    items = _cells(grid, shares, totals, with_numbers)
    items += _row_labels(grid, labels, numbers)
    items += _column_labels(grid, numbers or labels)
    right = grid.right
    if with_numbers:
        items += _totals(grid, totals)
        right += GAP + text_width("images", LABEL_SIZE)
    key = _key(with_numbers)
    items += key.moved(grid.left, grid.bottom + 12.0)
    right = max(right, grid.left + key.width)
    return Panel(right, grid.bottom + 12.0 + key.height, tuple(items))


def _cells(
    grid: _Grid, shares: list[list[float]], totals: list[int], with_numbers: bool
) -> list[Item]:
    width, height = grid.right - grid.left, grid.bottom - grid.top
    items: list[Item] = []
    for row, total in enumerate(totals):
        if not total:  # a class without images is neither right nor wrong
            y = grid.top + row * grid.height
            items.append(Box(grid.left, y, width, grid.height, EMPTY, NONE, 0.0))
    step = 1 if grid.number <= 40 else 5
    for index in range(step, grid.number, step):  # faint lines that lead from a label to its cells
        x, y = grid.left + index * grid.width, grid.top + index * grid.height
        for start, end in (
            (Point(x, grid.top), Point(x, grid.bottom)),
            (Point(grid.left, y), Point(grid.right, y)),
        ):
            items.append(Curve((start, start, end, end), GUIDE, 0.5))
    inset = 0.6 if with_numbers else 0.2
    inner = grid.width - 2 * inset, grid.height - 2 * inset
    for row, line in enumerate(shares):
        for column, share in enumerate(line):
            if share > 0:
                fill, ink = _paint(share, row == column)
                x, y = grid.left + column * grid.width, grid.top + row * grid.height
                items.append(Box(x + inset, y + inset, *inner, fill, NONE, 0.0))
                if with_numbers:
                    middle = grid.middle(row, column)
                    items.append(placed_text(_percent(share), middle, LABEL_SIZE, ink))
    return [*items, Box(grid.left, grid.top, width, height, NONE, FRAME)]


def _row_labels(grid: _Grid, labels: list[str], numbers: list[str]) -> list[Item]:
    """Names, and the numbers that stand for them at the columns, if any."""
    size, right = grid.label_size, grid.left - GAP
    items: list[Item] = [_ending_at("true class", Point(right, grid.top - 8.0), LABEL_SIZE, FAINT)]
    for row, number in enumerate(numbers):
        items.append(_ending_at(number, Point(right, grid.middle(row, 0).y), size, FAINT))
    if numbers:
        right -= max(text_width(number, size) for number in numbers) + GAP
    for row, label in enumerate(labels):
        items.append(_ending_at(label, Point(right, grid.middle(row, 0).y), size, INK))
    return items


def _column_labels(grid: _Grid, labels: list[str]) -> list[Item]:
    widest = max(*(text_width(label, 1.0) for label in labels), 0.1)  # names may be blank
    size = min(grid.label_size, (grid.width - 2.5) / widest)
    heading = Point((grid.left + grid.right) / 2, CAPTION_SIZE / 2)
    items: list[Item] = [placed_text("taken for", heading, LABEL_SIZE, FAINT)]
    for column, label in enumerate(labels):
        middle = Point(grid.middle(0, column).x, grid.top - 8.0)
        items.append(placed_text(label, middle, size, INK))
    return items


def _totals(grid: _Grid, totals: list[int]) -> list[Item]:
    right = grid.right + GAP + text_width("images", LABEL_SIZE)
    items: list[Item] = [_ending_at("images", Point(right, grid.top - 8.0), LABEL_SIZE, FAINT)]
    for row, total in enumerate(totals):
        text = f"{total:,}"
        size = min(LABEL_SIZE, (right - grid.right - 1.0) / text_width(text, 1.0))
        items.append(_ending_at(text, Point(right, grid.middle(row, 0).y), size, FAINT))
    return items


def _key(with_numbers: bool) -> Panel:
    """The legend of the colours."""
    items: list[Item] = []
    swatch, height, row = 34.0, 13.0, 18.0
    left = max(text_width(name, LABEL_SIZE) for name in ("recognised", "mistaken")) + GAP
    for number, (name, shares) in enumerate((("recognised", RIGHT_KEY), ("mistaken", WRONG_KEY))):
        middle = number * row + height / 2
        items.append(_ending_at(name, Point(left - GAP, middle), LABEL_SIZE, FAINT))
        for index, share in enumerate(shares):
            fill, ink = _paint(share, right=number == 0)
            x = left + index * (swatch + 2.0)
            items.append(Box(x, number * row, swatch, height, fill, NONE, 0.0))
            center = Point(x + swatch / 2, middle)
            items.append(placed_text(f"{round(100 * share)} %", center, 8.0, ink))
    below = 2 * row + CAPTION_SIZE / 2
    note = "of a class's images" + ("; in the cells, in percent" if with_numbers else "")
    items.append(placed_text(note, Point(left, below), 8.0, FAINT, align=0.0))
    width = max(left + len(RIGHT_KEY) * (swatch + 2.0), left + text_width(note, 8.0))
    return Panel(width, below + 8.0, tuple(items))


def _percent(share: float) -> str:
    """Never 0 for something, never 100 for less than all."""
    if share < 0.005:
        return "<1"
    return str(min(round(100 * share), 99)) if share < 1 else "100"


def _paint(share: float, right: bool) -> tuple[str, str]:
    """A cell's colour, and that of text on it; the root makes mistakes of few percent visible."""
    stops = RIGHT if right else WRONG
    index = (share if right else math.sqrt(share)) * (len(stops) - 1)
    lower = min(int(index), len(stops) - 2)
    light, dark = (bytes.fromhex(stop.removeprefix("#")) for stop in stops[lower : lower + 2])
    mixed = [round(a + (b - a) * (index - lower)) for a, b in zip(light, dark, strict=True)]
    return f"#{bytes(mixed).hex()}", "#ffffff" if _luminance(mixed) < 0.2 else INK


def _luminance(rgb: Sequence[int]) -> float:
    """Relative luminance, as the web's rules for contrast define it."""
    red, green, blue = (
        value / 255 / 12.92 if value <= 10 else ((value / 255 + 0.055) / 1.055) ** 2.4
        for value in rgb
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue

"""A layered layout: boxes in columns, links from left to right that never cross a box.

The steps are Sugiyama's. A link that spans columns passes the ones between through *bends*,
which take room like boxes do; the order within each column is chosen for few crossings, then
heights for straight links. Between two columns there is nothing but links, so a link meets no
box but its own ends. The same input always gives the same layout.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from prnas.drawing.layout.graph import Graph, Link, Segment, build_graph, order_columns
from prnas.drawing.layout.heights import Ports, Spacing, middles_of, ports_of
from prnas.drawing.picture import Point, Rectangle


class Size(NamedTuple):
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Route:
    """The part of a link that no earlier link of its bundle has drawn, as Bezier points."""

    link: int
    points: tuple[Point, ...]
    arrives: bool  # ends at the target, rather than at another line of the bundle


@dataclass(frozen=True, slots=True)
class Layout:
    """Positions of boxes and lines; the upper left corner is at (0, 0)."""

    width: float
    height: float
    boxes: tuple[Rectangle, ...]
    columns: tuple[Rectangle, ...]
    routes: tuple[Route, ...]


def lay_out(
    sizes: Sequence[Size],
    columns: Sequence[Sequence[int]],
    links: Sequence[Link],
    spacing: Spacing | None = None,
) -> Layout:
    """Place boxes of `sizes`, numbered from 0, in `columns`, and route the links.

    The order within a column is only where the search for few crossings starts; but of a
    layout and its mirror image, the one nearer to that order in the first column is taken.
    """
    spacing = spacing or Spacing()
    graph = build_graph([size.height for size in sizes], columns, links)
    order_columns(graph)
    ports = ports_of(graph, spacing)
    middles = middles_of(graph, ports, spacing)
    top = min((middles[item] - h / 2 for item, h in enumerate(graph.heights)), default=0.0)
    middles = {item: middle - top for item, middle in middles.items()}
    levels = {key: middles[key[0]] + offset for key, offset in ports.items()}
    bands = _bands(graph, sizes, levels, spacing)
    bottom = max((middles[item] + h / 2 for item, h in enumerate(graph.heights)), default=0.0)
    boxes: list[Rectangle] = []
    for box, (width, height) in enumerate(sizes):
        band = bands[graph.column_of[box]]
        left = (band.left + band.right - width) / 2
        boxes.append(Rectangle(left, middles[box] - height / 2, width, height))
    return Layout(
        width=bands[-1].right if bands else 0.0,
        height=bottom,
        boxes=tuple(boxes),
        columns=tuple(Rectangle(b.left, 0.0, b.right - b.left, bottom) for b in bands),
        routes=tuple(_Router(graph, levels, bands, boxes, spacing.lead).routes()),
    )


class _Band(NamedTuple):
    """The horizontal extent of a column."""

    left: float
    right: float


def _bands(graph: Graph, sizes: Sequence[Size], levels: Ports, spacing: Spacing) -> list[_Band]:
    climbs = [0.0] * len(graph.columns)  # height of the steepest segment into each column
    for left, right, bundle in graph.segments():
        column = graph.column_of[right]
        climb = abs(levels[right, bundle, False] - levels[left, bundle, True])
        climbs[column] = max(climbs[column], climb)
    bands: list[_Band] = []
    for column, climb in zip(graph.columns, climbs, strict=True):
        gap = min(spacing.least_gap + spacing.slope * climb, spacing.most_gap)
        left = bands[-1].right + gap if bands else 0.0
        widths = (sizes[item].width for item in column if not graph.is_bend(item))
        bands.append(_Band(left, left + max(widths, default=0.0)))
    return bands


@dataclass(frozen=True, slots=True)
class _Router:
    graph: Graph
    levels: Ports  # heights at which links leave and enter items
    bands: Sequence[_Band]
    boxes: Sequence[Rectangle]
    lead: float

    def routes(self) -> Iterable[Route]:
        drawn: set[Segment] = set()
        for number, path in enumerate(self.graph.paths):
            run: list[Segment] = []
            for segment in path:
                if segment not in drawn:
                    run.append(segment)
                elif run:
                    yield Route(number, self._points(run), arrives=False)
                    run = []
            if run:
                yield Route(number, self._points(run), arrives=True)
            drawn.update(path)

    def _points(self, run: Sequence[Segment]) -> tuple[Point, ...]:
        first, _, bundle = run[0]
        x = self._band(first).right
        if not self.graph.is_bend(first):
            x = self.boxes[first].x + self.boxes[first].width
        points = [Point(x, self.levels[first, bundle, True])]
        for left, right, bundle in run:
            end = self.levels[right, bundle, False]
            _line(points, Point(self._band(left).right, self.levels[left, bundle, True]))
            _swing(points, Point(self._band(right).left - self.lead, end))
            if not self.graph.is_bend(right):
                _line(points, Point(self.boxes[right].x, end))
        return tuple(points)

    def _band(self, item: int) -> _Band:
        return self.bands[self.graph.column_of[item]]


def _line(points: list[Point], end: Point) -> None:
    start = points[-1]
    if start != end:
        points += [start, end, end]


def _swing(points: list[Point], end: Point) -> None:
    """A curve that leaves and arrives level, and so stays between the two heights."""
    start = points[-1]
    middle = (start.x + end.x) / 2
    points += [Point(middle, start.y), Point(middle, end.y), end]

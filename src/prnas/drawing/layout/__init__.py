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

__all__ = ["Layout", "Link", "Route", "Size", "Spacing", "lay_out"]


class Size(NamedTuple):
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Route:
    """The part of a link that no earlier link of its bundle has drawn, as Bezier points."""

    link: int
    points: tuple[Point, ...]
    arrives: bool  # at the target, rather than at another line of the bundle


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything is; the upper left corner is at (0, 0)."""

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
    bands = _bands(graph, sizes, _climbs(graph, ports, middles), spacing)
    bottom = max((middles[item] + h / 2 for item, h in enumerate(graph.heights)), default=0.0)
    boxes = tuple(
        _centered(size, bands[graph.column_of[box]], middles[box]) for box, size in enumerate(sizes)
    )
    router = _Router(graph, ports, middles, bands, boxes, spacing.lead)
    return Layout(
        width=bands[-1].right if bands else 0.0,
        height=bottom,
        boxes=boxes,
        columns=tuple(Rectangle(b.left, 0.0, b.right - b.left, bottom) for b in bands),
        routes=tuple(router.routes()),
    )


class _Band(NamedTuple):
    """From where to where a column reaches."""

    left: float
    right: float


def _climbs(graph: Graph, ports: Ports, middles: dict[int, float]) -> list[float]:
    """How far the steepest segment into each column rises or falls."""
    climbs = [0.0] * len(graph.columns)
    for left, right, bundle in graph.segments():
        start = middles[left] + ports[left, bundle, True]
        end = middles[right] + ports[right, bundle, False]
        column = graph.column_of[right]
        climbs[column] = max(climbs[column], abs(end - start))
    return climbs


def _bands(
    graph: Graph, sizes: Sequence[Size], climbs: Sequence[float], spacing: Spacing
) -> list[_Band]:
    bands: list[_Band] = []
    for column, climb in zip(graph.columns, climbs, strict=True):
        gap = min(spacing.least_gap + spacing.slope * climb, spacing.most_gap)
        left = bands[-1].right + gap if bands else 0.0
        widths = (sizes[item].width for item in column if not graph.is_bend(item))
        bands.append(_Band(left, left + max(widths, default=0.0)))
    return bands


def _centered(size: Size, band: _Band, middle: float) -> Rectangle:
    left = (band.left + band.right - size.width) / 2
    return Rectangle(left, middle - size.height / 2, size.width, size.height)


@dataclass(frozen=True, slots=True)
class _Router:
    graph: Graph
    ports: Ports
    middles: dict[int, float]
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
        points = [self._start(run[0])]
        for left, right, bundle in run:
            band, next_band = (self.bands[self.graph.column_of[item]] for item in (left, right))
            start = self.middles[left] + self.ports[left, bundle, True]
            end = self.middles[right] + self.ports[right, bundle, False]
            _line(points, Point(band.right, start))
            _swing(points, Point(next_band.left - self.lead, end))
            if not self.graph.is_bend(right):
                _line(points, Point(self.boxes[right].x, end))
        return tuple(points)

    def _start(self, segment: Segment) -> Point:
        item = segment.left
        y = self.middles[item] + self.ports[item, segment.bundle, True]
        if self.graph.is_bend(item):
            return Point(self.bands[self.graph.column_of[item]].right, y)
        box = self.boxes[item]
        return Point(box.x + box.width, y)


def _line(points: list[Point], end: Point) -> None:
    start = points[-1]
    if start != end:
        points += [start, end, end]


def _swing(points: list[Point], end: Point) -> None:
    """A curve that leaves and arrives level, and so stays between the two heights."""
    start = points[-1]
    middle = (start.x + end.x) / 2
    points += [Point(middle, start.y), Point(middle, end.y), end]

"""The layered graph behind a layout, and the order of its columns for few crossings."""

import random
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

_STARTS = 12  # orders to start from: the given one and shuffled ones
_SWEEPS = 10
_DISORDER = 0.5  # how much length two boxes are worth that stand in the order of their numbers
_PATIENCE = 20_000  # items times orders to try, so that a huge graph still ends soon


class Link(NamedTuple):
    """A link from a box to one in a later column; links of a bundle share an end."""

    source: int
    target: int
    bundle: int | None = None  # its links run as one line for as long as they go the same way


class Segment(NamedTuple):
    """A part of links between neighbouring columns; `bundle` tells lines apart."""

    left: int
    right: int
    bundle: int


@dataclass(slots=True)
class Graph:
    """Items are boxes by their number, then bends; every segment joins neighbouring columns."""

    columns: list[list[int]]
    heights: list[float]
    num_boxes: int
    paths: list[list[Segment]] = field(default_factory=list[list[Segment]])
    chains: list[list[int]] = field(default_factory=list[list[int]])
    column_of: dict[int, int] = field(default_factory=dict[int, int])
    after: dict[int, list[int]] = field(default_factory=lambda: defaultdict[int, list[int]](list))
    before: dict[int, list[int]] = field(default_factory=lambda: defaultdict[int, list[int]](list))

    def segments(self) -> list[Segment]:
        return list(dict.fromkeys(segment for path in self.paths for segment in path))

    def is_bend(self, item: int) -> bool:
        return item >= self.num_boxes


def build_graph(
    heights: Sequence[float], columns: Sequence[Sequence[int]], links: Sequence[Link]
) -> Graph:
    """The graph of boxes with `heights` in `columns`, with a bend wherever a link passes one."""
    if sorted(box for column in columns for box in column) != list(range(len(heights))):
        raise ValueError("every box must be in exactly one column")
    graph = Graph([list(column) for column in columns], list(heights), len(heights))
    graph.column_of = {box: c for c, column in enumerate(columns) for box in column}
    bends: dict[tuple[int, int], int] = {}  # by bundle and column
    for number, link in enumerate(links):
        bundle = -1 - number if link.bundle is None else link.bundle
        first, last = graph.column_of[link.source], graph.column_of[link.target]
        if first >= last:
            raise ValueError(f"link {number} does not lead to a later column")
        between: list[int] = []
        for column in range(first + 1, last):
            if (bundle, column) not in bends:
                bends[bundle, column] = item = len(graph.heights)
                graph.heights.append(0.0)
                graph.columns[column].append(item)
                graph.column_of[item] = column
            between.append(bends[bundle, column])
        stops = [link.source, *between, link.target]
        graph.paths.append([Segment(a, b, bundle) for a, b in pairwise(stops)])
    graph.chains = _chains(bends)
    for left, right in dict.fromkeys((s.left, s.right) for s in graph.segments()):
        graph.after[left].append(right)
        graph.before[right].append(left)
    return graph


def _chains(bends: dict[tuple[int, int], int]) -> list[list[int]]:
    """The bends of each bundle, cut where it skips a column."""
    chains: list[list[int]] = []
    previous = None
    for bundle, column in sorted(bends):
        if previous != (bundle, column - 1):
            chains.append([])
        chains[-1].append(bends[bundle, column])
        previous = (bundle, column)
    return chains


def order_columns(graph: Graph) -> None:
    """Order every column for few crossings, then for short links and a natural order."""
    shuffled = random.Random(0)
    tries = _PATIENCE // (_SWEEPS * len(graph.heights) + 1)
    best, best_cost = graph.columns, (float("inf"), 0.0)
    for start in range(max(2, min(_STARTS, tries))):
        if start:
            for column in graph.columns:
                shuffled.shuffle(column)
        for sweep in range(_SWEEPS):
            _sweep(graph, forward=(start + sweep) % 2 == 1)
            _transpose(graph)
            if (cost := _cost(graph)) < best_cost:
                best, best_cost = [list(column) for column in graph.columns], cost
    graph.columns = best
    _keep_first_on_top(graph)


def _sweep(graph: Graph, forward: bool) -> None:
    """Sort each column by the barycenters of its items' neighbours in the column before."""
    columns = graph.columns if forward else graph.columns[::-1]
    neighbours = graph.before if forward else graph.after
    for reference, column in pairwise(columns):
        index = {item: float(i) for i, item in enumerate(reference)}
        centers = {
            item: sum(index[other] for other in neighbours[item]) / len(neighbours[item])
            for item in column
            if neighbours[item]
        }
        movable = iter(sorted(centers, key=centers.__getitem__))
        column[:] = [next(movable) if item in centers else item for item in column]


def _transpose(graph: Graph) -> None:
    """Swap neighbours in a column for as long as that removes crossings."""
    index = {item: i for column in graph.columns for i, item in enumerate(column)}
    improved = True
    while improved:
        improved = False
        for column in graph.columns:
            for i in range(len(column) - 1):
                upper, lower = column[i], column[i + 1]
                now = _crossings_of_pair(graph, index, upper, lower)
                if now and now > _crossings_of_pair(graph, index, lower, upper):
                    column[i], column[i + 1] = lower, upper
                    index[upper], index[lower] = i + 1, i
                    improved = True


def _crossings_of_pair(graph: Graph, index: dict[int, int], upper: int, lower: int) -> int:
    return sum(
        index[a] > index[b]
        for neighbours in (graph.before, graph.after)
        for a in neighbours[upper]
        for b in neighbours[lower]
    )


def _cost(graph: Graph) -> tuple[float, float]:
    crossings, length = 0, 0.0
    for left, right in pairwise(graph.columns):
        index = {item: i for i, item in enumerate(right)}
        middle = (len(left) - len(right)) / 2
        ends: list[int] = []
        for i, item in enumerate(left):
            targets = [index[other] for other in graph.after[item]]
            crossings += sum(len(ends) - bisect_right(ends, target) for target in targets)
            length += sum(abs(i - middle - target) for target in targets)
            for target in targets:
                insort(ends, target)
    return crossings, length + _DISORDER * sum(map(_inversions, graph.columns))


def _inversions(numbers: Sequence[int]) -> int:
    return sum(a > b for i, a in enumerate(numbers) for b in numbers[i + 1 :])


def _keep_first_on_top(graph: Graph) -> None:
    """Take the layout or its mirror image, both as good: the one nearer to the given order."""
    first = next((column for column in graph.columns if len(column) > 1), None)
    if first and _inversions(first) > _inversions(first[::-1]):
        for column in graph.columns:
            column.reverse()

"""The heights of a layered graph's items, for straight links and no overlap."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from prnas.drawing.layout.graph import Graph

_RELAXATIONS = 60
_SNAPS = 3
_SNAP = 8.0  # a link that is bent less than this looks like a mistake

# By item, bundle, and whether the bundle leaves the item or enters it.
Ports = dict[tuple[int, int, bool], float]


@dataclass(frozen=True, slots=True)
class Spacing:
    """Free room, in points."""

    boxes: float = 10.0  # between two boxes of a column
    lines: float = 9.0  # between a line and its neighbours in a column
    ports: float = 9.0  # between two lines at the same side of a box, if the box is high enough
    least_gap: float = 26.0  # between columns
    most_gap: float = 64.0
    slope: float = 0.2  # a gap is this part of the highest climb in it
    lead: float = 8.0  # how far a link runs straight into its target


class _Pull(NamedTuple):
    """A pull towards a straight segment: the item `offset` below the `other` one."""

    other: int
    offset: float
    weight: float


def ports_of(graph: Graph, spacing: Spacing) -> Ports:
    """The offsets from a box's middle (down) at which bundles leave (True) or enter it (False)."""
    index = {item: i for column in graph.columns for i, item in enumerate(column)}
    ends: dict[tuple[int, bool], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for left, right, bundle in graph.segments():
        ends[left, True][bundle].append(index[right])
        ends[right, False][bundle].append(index[left])
    ports: Ports = {}
    for (item, leaves), bundles in ends.items():
        if graph.is_bend(item):
            ports.update({(item, bundle, leaves): 0.0 for bundle in bundles})
            continue
        ordered = sorted(bundles, key=lambda b: (sum(bundles[b]) / len(bundles[b]), b))
        step = min(spacing.ports, 0.7 * graph.heights[item] / max(1, len(ordered) - 1))
        for i, bundle in enumerate(ordered):
            ports[item, bundle, leaves] = (i - (len(ordered) - 1) / 2) * step
    return ports


class _Heights:
    """The middle of every item, moved step by step without ever changing an order."""

    def __init__(self, graph: Graph, ports: Ports, spacing: Spacing) -> None:
        self.graph = graph
        self.spacing = spacing
        self.pulls: dict[int, list[_Pull]] = defaultdict(list)
        for left, right, bundle in graph.segments():
            # Long straight runs matter more than the last part of a link.
            weight = (1.0, 2.0, 4.0)[graph.is_bend(left) + graph.is_bend(right)]
            offset = ports[right, bundle, False] - ports[left, bundle, True]
            self.pulls[left].append(_Pull(right, offset, weight))
            self.pulls[right].append(_Pull(left, -offset, weight))
        self.middle = dict.fromkeys(range(len(graph.heights)), 0.0)
        self.above: dict[int, int] = {}
        self.below: dict[int, int] = {}
        for column in graph.columns:
            for upper, lower in pairwise(column):
                self.above[lower], self.below[upper] = upper, lower

    def distance(self, upper: int, lower: int) -> float:
        """The least distance between the middles of two neighbours in a column."""
        lines = self.graph.is_bend(upper) or self.graph.is_bend(lower)
        free = self.spacing.lines if lines else self.spacing.boxes
        return (self.graph.heights[upper] + self.graph.heights[lower]) / 2 + free

    def relax(self, column: list[int]) -> None:
        """Least squares of a column's climbs."""
        # Pool adjacent violators: items that would come too close move as one block.
        blocks: list[tuple[float, float, int]] = []  # target of the first item, weight, items
        offsets = [0.0]
        for upper, lower in pairwise(column):
            offsets.append(offsets[-1] + self.distance(upper, lower))
        for item, offset in zip(column, offsets, strict=False):
            target, weight = self._mean_target([item])
            block = (target - offset, weight, 1)
            while blocks and blocks[-1][0] >= block[0]:
                before = blocks.pop()
                weight = before[1] + block[1]
                mean = (before[0] * before[1] + block[0] * block[1]) / weight
                block = (mean, weight, before[2] + block[2])
            blocks.append(block)
        targets = [target for target, _, count in blocks for _ in range(count)]
        for item, target, offset in zip(column, targets, offsets, strict=False):
            self.middle[item] = target + offset

    def _mean_target(self, group: Sequence[int]) -> tuple[float, float]:
        outside = list(self._outside(group))
        weight = sum(pull.weight for pull in outside)
        if not weight:
            return self.middle[group[0]], 1e-3
        total = sum(pull.weight * (self.middle[pull.other] + pull.offset) for pull in outside)
        return total / weight, weight

    def _outside(self, group: Sequence[int]) -> Iterator[_Pull]:
        return (pull for item in group for pull in self.pulls[item] if pull.other not in group)

    def _room(self, group: Sequence[int]) -> tuple[float, float]:
        """The range of heights at which all items of a group could be."""
        least, most = -float("inf"), float("inf")
        for item in group:
            if (upper := self.above.get(item)) is not None:
                least = max(least, self.middle[upper] + self.distance(upper, item))
            if (lower := self.below.get(item)) is not None:
                most = min(most, self.middle[lower] - self.distance(item, lower))
        return least, most

    def straighten(self, groups: Sequence[list[int]]) -> None:
        """Bring each group to one height; `groups` hold all items, none after a group below it."""
        targets = [sum(self.middle[item] for item in group) / len(group) for group in groups]
        pushed: list[dict[int, float]] = []
        for downwards in (True, False):
            order = list(zip(groups, targets, strict=True))
            for group, target in order if downwards else reversed(order):
                least, most = self._room(group)
                pushed_to = max(target, least) if downwards else min(target, most)
                self.middle.update(dict.fromkeys(group, pushed_to))
            pushed.append(dict(self.middle))
        down, up = pushed  # both keep the distances, and so does their mean
        self.middle = {item: (down[item] + up[item]) / 2 for item in self.middle}

    def settle(self, group: list[int]) -> None:
        """Move a group to the mean of what its links ask for, as far as there is room."""
        least, most = self._room(group)
        target, _ = self._mean_target(group)
        self.middle.update(dict.fromkeys(group, max(least, min(target, most))))

    def snap(self, group: list[int]) -> None:
        """Move a group a little if that makes some of its links straight."""
        least, most = self._room(group)
        now = self.middle[group[0]]
        pulls = list(self._outside(group))
        targets = [self.middle[pull.other] + pull.offset for pull in pulls]

        def unrest(middle: float) -> float:
            # The root likes one straight and one bent link better than two half-bent ones.
            apart = (abs(target - middle) ** 0.5 for target in targets)
            return sum(pull.weight * a for pull, a in zip(pulls, apart, strict=True))

        near = [t for t in targets if abs(t - now) < _SNAP and least <= t <= most]
        best = min(near, key=unrest, default=now)
        if unrest(best) < unrest(now) - 1e-9:
            self.middle.update(dict.fromkeys(group, best))


def middles_of(graph: Graph, ports: Ports, spacing: Spacing) -> dict[int, float]:
    heights = _Heights(graph, ports, spacing)
    for _ in range(_RELAXATIONS):
        for column in (*graph.columns, *reversed(graph.columns)):  # forth and back
            heights.relax(column)
    groups = _groups(graph)
    heights.straighten(groups)
    for _ in range(_RELAXATIONS):
        for group in groups:
            heights.settle(group)
    for _ in range(_SNAPS):
        for group in sorted(groups, key=len, reverse=True):
            heights.snap(group)
    return heights.middle


def _groups(graph: Graph) -> list[list[int]]:
    """All items, chains of bends together, ordered so that none comes after one below it."""
    groups = [[box] for box in range(graph.num_boxes)] + graph.chains
    while True:
        ordered = _from_top(graph, groups)
        rest = [group for group in groups if group not in ordered]
        if not rest:
            return ordered
        # Two lines that cross are above each other in turn: the longest one gives way.
        longest = max(rest, key=len)
        half = len(longest) // 2
        groups.remove(longest)
        groups += [longest[:half], longest[half:]]


def _from_top(graph: Graph, groups: Sequence[list[int]]) -> list[list[int]]:
    """Groups from top to bottom, without those in a cycle, which have no such order."""
    group_of = {item: number for number, group in enumerate(groups) for item in group}
    below: dict[int, set[int]] = defaultdict(set)
    for column in graph.columns:
        for upper, lower in pairwise(column):
            below[group_of[upper]].add(group_of[lower])
    waiting = Counter(lower for lowers in below.values() for lower in lowers)
    ready = [number for number in range(len(groups)) if not waiting[number]]
    for upper in ready:
        for lower in sorted(below[upper]):
            waiting[lower] -= 1
            if not waiting[lower]:
                ready.append(lower)
    return [groups[number] for number in ready]

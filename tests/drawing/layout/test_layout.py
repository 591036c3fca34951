"""The layered layout: no overlaps, no link through a box, few crossings, always the same."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prnas.drawing.layout import Layout, Link, Size, Spacing, lay_out
from tests.support.geometry import inside, overlap, sampled

UNIT = Size(20.0, 10.0)


def crossings(layout: Layout, links: list[Link]) -> int:
    """Of links that join neighbouring columns."""
    ends = [
        (boxes[0].x, boxes[0].y, boxes[1].y)
        for boxes in ([layout.boxes[link.source], layout.boxes[link.target]] for link in links)
    ]
    return sum(a[0] == b[0] and (a[1] - b[1]) * (a[2] - b[2]) < 0 for a, b in combinations(ends, 2))


@st.composite
def layered_graphs(draw: st.DrawFn) -> tuple[list[Size], list[list[int]], list[Link]]:
    columns: list[list[int]] = []
    sizes: list[Size] = []
    for _ in range(draw(st.integers(2, 5))):
        count = draw(st.integers(0, 5))
        columns.append(list(range(len(sizes), len(sizes) + count)))
        sizes += [Size(draw(st.integers(10, 60)), draw(st.integers(8, 30))) for _ in range(count)]
    places = [(c, box) for c, column in enumerate(columns) for box in column]
    possible = [(a, b) for ca, a in places for cb, b in places if ca < cb]
    pairs = draw(st.lists(st.sampled_from(possible), max_size=14, unique=True)) if possible else []
    links = [Link(a, b, bundle=draw(st.sampled_from([None, a]))) for a, b in pairs]
    return sizes, columns, links


@settings(max_examples=60, deadline=None)
@given(layered_graphs())
def test_nothing_overlaps_and_links_pass_beside_boxes(
    graph: tuple[list[Size], list[list[int]], list[Link]],
) -> None:
    sizes, columns, links = graph
    layout = lay_out(sizes, columns, links)
    assert not any(overlap(a, b) for a, b in combinations(layout.boxes, 2))
    for route in layout.routes:
        assert not any(inside(p, box) for p in sampled(route.points, 12) for box in layout.boxes)
        if route.arrives:
            target = layout.boxes[links[route.link].target]
            assert route.points[-1].x == pytest.approx(target.x)
            assert target.y <= route.points[-1].y <= target.y + target.height
    for box in layout.boxes:
        assert box.x >= 0
        assert box.x + box.width <= layout.width + 0.01
        assert box.y >= -0.01
        assert box.y + box.height <= layout.height + 0.01


@settings(max_examples=10, deadline=None)
@given(layered_graphs())
def test_the_same_graph_always_gets_the_same_layout(
    graph: tuple[list[Size], list[list[int]], list[Link]],
) -> None:
    assert lay_out(*graph) == lay_out(*graph)


def test_columns_follow_each_other() -> None:
    layout = lay_out([UNIT] * 3, [[0], [1], [2]], [Link(0, 1), Link(1, 2)])
    for left, right in pairwise(layout.boxes):
        assert right.x >= left.x + left.width + Spacing().least_gap
    assert len({box.y for box in layout.boxes}) == 1


def test_links_that_need_not_cross_do_not() -> None:
    links = [Link(0, 7), Link(1, 6), Link(2, 5), Link(3, 4)]
    layout = lay_out([UNIT] * 8, [[0, 1, 2, 3], [4, 5, 6, 7]], links)
    assert crossings(layout, links) == 0


def test_two_by_two_crosses_once() -> None:
    links = [Link(a, b) for a in (0, 1) for b in (2, 3)]
    layout = lay_out([UNIT] * 4, [[0, 1], [2, 3]], links)
    assert crossings(layout, links) == 1


def test_the_first_column_keeps_its_order_where_a_mirror_image_is_as_good() -> None:
    layout = lay_out([UNIT] * 4, [[0, 1], [2, 3]], [Link(0, 3), Link(1, 2)])
    assert layout.boxes[0].y < layout.boxes[1].y
    assert layout.boxes[3].y < layout.boxes[2].y


def test_a_long_link_runs_level_past_the_columns_between() -> None:
    columns = [[0], [1], [2], [3]]
    links = [Link(0, 1), Link(1, 2), Link(2, 3), Link(0, 3)]
    layout = lay_out([UNIT] * 4, columns, links)
    (route,) = [route for route in layout.routes if route.link == 3]
    left, right = layout.boxes[1].x, layout.boxes[2].x + UNIT.width
    heights = {round(p.y, 6) for p in route.points if left <= p.x <= right}
    assert len(heights) == 1


def test_a_bundle_is_drawn_once_where_its_links_go_the_same_way() -> None:
    columns = [[0], [1], [2], [3, 4]]
    alone = lay_out([UNIT] * 5, columns, [Link(0, 3), Link(0, 4)])
    bundled = lay_out([UNIT] * 5, columns, [Link(0, 3, bundle=0), Link(0, 4, bundle=0)])
    assert len(alone.routes[1].points) == len(alone.routes[0].points)
    assert len(bundled.routes[1].points) < len(bundled.routes[0].points)
    assert bundled.routes[1].points[0] in bundled.routes[0].points
    assert all(route.arrives for route in bundled.routes)


def test_a_bundle_joins_on_the_way_to_a_common_target() -> None:
    columns = [[0, 1], [2], [3], [4]]
    layout = lay_out([UNIT] * 5, columns, [Link(0, 4, bundle=9), Link(1, 4, bundle=9)])
    assert [route.arrives for route in layout.routes] == [True, False]
    assert layout.routes[1].points[-1] in layout.routes[0].points
    assert layout.routes[1].points[-1].x == pytest.approx(layout.columns[1].x - Spacing().lead)


def test_lines_at_one_side_of_a_box_keep_apart() -> None:
    layout = lay_out([Size(20, 30)] * 3, [[0, 1], [2]], [Link(0, 2), Link(1, 2)])
    upper, lower = (route.points[-1].y for route in layout.routes)
    assert lower - upper == pytest.approx(Spacing().ports)


def test_nothing_is_laid_out_as_nothing() -> None:
    assert lay_out([], [], []) == Layout(0.0, 0.0, (), (), ())


def test_a_link_must_lead_to_a_later_column() -> None:
    with pytest.raises(ValueError, match="link 1 does not lead to a later column"):
        lay_out([UNIT] * 3, [[0], [1, 2]], [Link(0, 1), Link(1, 2)])


@pytest.mark.parametrize("columns", [[[0]], [[0, 1], [1]], [[0, 1, 2]]])
def test_every_box_must_be_in_one_column(columns: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="exactly one column"):
        lay_out([UNIT] * 2, columns, [])

"""Drawings of cells and of the morphism graph: complete, and readable for any of them."""

from itertools import combinations, pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prnas.drawing.cells import draw_genotype, draw_morphism_graph
from prnas.drawing.picture import Box, Curve, Picture, Rectangle, Text
from prnas.space import zoo
from prnas.space.analysis.counting import by_distance, links
from prnas.space.analysis.sampling import random_genotype
from prnas.space.genotype import Cell, Edge, Genotype
from prnas.space.operations import Conv, Conv1x7x1, Operation, Pool, Skip, Zero
from prnas.space.setting import SETTINGS
from prnas.space.shape import CellShape
from tests.support.geometry import extent, inside, overlap, sampled
from tests.support.settings import GENOTYPE201
from tests.support.strategies import cells, shapes

SLACK = 0.01
OPERATIONS: tuple[Operation, ...] = (
    Skip(),
    Pool("max"),
    Pool("avg", 5),
    Conv(3),
    Conv(7, 2, (1, 2)),
    Conv(5, 1, (4, 4, 4)),
    Conv1x7x1(),
)
CELL = Cell(
    (
        (Edge(0, Conv(3)), Edge(1, Skip())),
        (Edge(2, Conv(5, 2, (1, 2))), Edge(1, Pool("max"))),
        (Edge(0, Pool("avg")), Edge(3, Conv(7))),
    ),
    concat=(2, 4),
)
DRAWN_CELLS = cells(max_nodes=8, ops=st.sampled_from(OPERATIONS))
ONE_NODE = Cell(((Edge(0, Conv(3)), Edge(1, Skip())),), concat=(2,))


def texts(picture: Picture) -> list[str]:
    return [item.text for item in picture.items if isinstance(item, Text)]


def boxes(picture: Picture) -> list[Rectangle]:
    return [extent(item) for item in picture.items if isinstance(item, Box)]


def curves(picture: Picture) -> list[Curve]:
    return [item for item in picture.items if isinstance(item, Curve)]


def box_of(picture: Picture, label: str) -> Rectangle:
    (found,) = [
        box
        for box in boxes(picture)
        for item in picture.items
        if isinstance(item, Text) and item.text == label and within(extent(item), box)
    ]
    return found


def within(inner: Rectangle, outer: Rectangle) -> bool:
    return (
        outer.x <= inner.x + SLACK
        and inner.x + inner.width <= outer.x + outer.width + SLACK
        and outer.y <= inner.y + SLACK
        and inner.y + inner.height <= outer.y + outer.height + SLACK
    )


def meets(curve: Curve, areas: list[Rectangle]) -> bool:
    """Whether some sampled point is inside one of the areas, not just on a border."""
    xs, ys = zip(*curve.points, strict=True)
    # The curve stays within the hull of its points; that rules most areas out.
    hull = Rectangle(min(xs), min(ys) - 1, max(xs) - min(xs), max(ys) - min(ys) + 2)
    near = [area for area in areas if overlap(hull, area, SLACK)]
    return bool(near) and any(inside(p, area) for p in sampled(curve.points, 24) for area in near)


def check_readable(picture: Picture) -> None:
    whole = Rectangle(0, 0, picture.width, picture.height)
    words = [extent(item) for item in picture.items if isinstance(item, Text)]
    assert all(within(area, whole) for area in (*boxes(picture), *words))
    assert not any(overlap(a, b, SLACK) for a, b in combinations(boxes(picture), 2))
    assert not any(overlap(a, b, SLACK) for a, b in combinations(words, 2))
    assert all(any(within(word, box) for word in words) for box in boxes(picture))
    for word in words:
        touched = [box for box in boxes(picture) if overlap(word, box, SLACK)]
        assert len(touched) <= 1
        assert all(within(word, box) for box in touched)
    areas = [*boxes(picture), *words]
    assert not any(meets(curve, areas) for curve in curves(picture))


@settings(max_examples=20, deadline=None)
@given(DRAWN_CELLS, DRAWN_CELLS)
def test_every_genotype_is_readable_and_complete(normal: Cell, reduction: Cell) -> None:
    picture = draw_genotype(Genotype(normal, reduction), "a title")
    check_readable(picture)
    shown = texts(picture)
    for op in OPERATIONS:
        edges = (*normal.operations, *reduction.operations)
        assert shown.count(op.label) == edges.count(op)
    for number in range(1, 9):
        drawn = sum(cell.num_nodes >= number for cell in (normal, reduction))
        assert shown.count(f"B{number}") == drawn


@settings(max_examples=20, deadline=None)
@given(shapes, st.integers(1, 4), st.integers(0, 1000))
def test_every_shape_is_readable_and_complete(shape: CellShape, nodes: int, seed: int) -> None:
    operations = [*OPERATIONS, Zero()]
    genotype = random_genotype(operations, Random(seed), nodes, shape, "last")
    picture = draw_genotype(genotype, "a title")
    check_readable(picture)
    shown = texts(picture)
    edges = [op for role in shape.roles for op in genotype.cell(role).operations]
    for op in operations:
        assert shown.count(op.label) == edges.count(op)
    assert shown.count("c") == len(shape.roles) * (shape.inputs + 1)
    assert ("reduction cell" in shown) == (len(shape.roles) == 2)


def test_a_cell_of_nasbench201_has_six_operations_and_one_input() -> None:
    shown = texts(draw_genotype(GENOTYPE201))
    labels = [op.label for op in GENOTYPE201.normal.operations]
    assert sorted(shown) == sorted([*labels, "B1", "B2", "B3", "c", "c", "k", "k−1"])


@pytest.mark.parametrize("name", zoo.names())
def test_every_published_cell_is_readable(name: str) -> None:
    check_readable(draw_genotype(zoo.get(name), zoo.entry(name).title))


@pytest.mark.parametrize("name", SETTINGS)
def test_every_space_is_readable(name: str) -> None:
    layers = by_distance(SETTINGS[name])
    graph = links(SETTINGS[name], [op for layer in layers for op in layer])
    picture = draw_morphism_graph(layers, graph, name)
    assert not any(overlap(a, b, SLACK) for a, b in combinations(boxes(picture), 2))
    assert {op.label for layer in layers for op in layer} <= set(texts(picture))


def test_a_cell_reads_from_left_to_right() -> None:
    picture = draw_genotype(Genotype(CELL, ONE_NODE))
    order = ["conv 5x5 d2 ×[1,2]", "B2", "conv 7x7", "B3"]
    places = [box_of(picture, label).x for label in order]
    assert places == sorted(places)
    assert {"normal cell", "reduction cell"} <= set(texts(picture))


def test_colours_tell_the_types_of_operations_apart() -> None:
    picture = draw_genotype(Genotype(CELL, CELL))
    fills: dict[str, str] = {}
    for box, text in pairwise(picture.items):
        if isinstance(box, Box) and isinstance(text, Text):
            fills[text.text] = box.fill
    assert fills["conv 3x3"] == fills["conv 7x7"]
    assert fills["max 3x3"] == fills["avg 3x3"]
    assert len({fills[label] for label in ("conv 3x3", "max 3x3", "skip", "B1", "c")}) == 5


def test_the_same_operation_twice_on_one_state_shows_twice() -> None:
    twice = Cell(((Edge(1, Conv(3)), Edge(1, Conv(3))),), (2,), repeated_inputs=True)
    picture = draw_genotype(Genotype(twice, twice))
    assert texts(picture).count("conv 3x3") == 4
    check_readable(picture)


def test_unused_inputs_and_nodes_are_shown() -> None:
    nodes = tuple((Edge(1, Conv(3)), Edge(1, Skip())) for _ in range(3))
    cell = Cell(nodes, (3,), repeated_inputs=True)
    shown = texts(draw_genotype(Genotype(cell, cell)))
    assert [shown.count(label) for label in ("k−2", "k−1", "B1", "B2", "B3")] == [2] * 5


def test_the_title_is_drawn_and_named() -> None:
    picture = draw_genotype(Genotype(CELL, CELL), "my cells")
    assert "my cells" in texts(picture)
    assert picture.title == "my cells: normal and reduction cell"
    untitled = draw_genotype(Genotype(CELL, CELL))
    assert untitled.title == "normal and reduction cell"
    assert untitled.height < picture.height


def test_a_long_title_or_label_does_not_blow_up_the_picture() -> None:
    deep = Cell(((Edge(0, Conv(3, 1, (1,) * 200)), Edge(1, Skip())),), (2,))
    picture = draw_genotype(Genotype(deep, deep), "long " * 200)
    assert picture.width < 1000
    check_readable(picture)


def test_a_drawing_is_always_the_same() -> None:
    assert draw_genotype(Genotype(CELL, CELL)) == draw_genotype(Genotype(CELL, CELL))


C3, C5, C7, C3D2, C3E, C5E = (
    Conv(3),
    Conv(5),
    Conv(7),
    Conv(3, 2),
    Conv(3, 1, (1,)),
    Conv(5, 1, (1,)),
)
COLUMNS: list[list[Operation]] = [[Skip(), Pool("max"), C3], [C5, C3D2, C3E], [C7, C5E]]
LINKS: list[tuple[Operation, Operation, str]] = [
    (C3, C5, "grow kernel"),
    (C5, C3, "shrink kernel"),
    (C3, C3D2, "grow dilation"),
    (C3D2, C3, "shrink dilation"),
    (C3, C3E, "insert expansion"),
    (C5, C7, "grow kernel"),
    (C7, C5, "shrink kernel"),
    (C3E, C5E, "grow kernel"),
    (C5E, C3E, "shrink kernel"),
    (C5, C5E, "insert expansion"),
]


def test_the_morphism_graph_has_columns_by_distance() -> None:
    picture = draw_morphism_graph(COLUMNS, LINKS, "morphisms")
    check_readable(picture)
    shown = texts(picture)
    assert {"0 steps", "1 step", "2 steps", "morphisms"} <= set(shown)
    places = [{box_of(picture, op.label).x for op in column} for column in COLUMNS]
    assert [len(place) for place in places] == [1, 1, 1]
    assert places == sorted(places, key=max)


def test_a_pair_of_operations_has_one_line_and_the_legend_names_both_ways() -> None:
    picture = draw_morphism_graph(COLUMNS, LINKS)
    legend = {"grow / shrink kernel", "grow / shrink dilation", "insert expansion"}
    assert legend <= set(texts(picture))
    assert len(curves(picture)) == 6 + len(legend)
    assert len({curve.stroke for curve in curves(picture)}) == len(legend)


def test_links_within_a_column_bulge_beside_it() -> None:
    links = [*LINKS, (C5, C3E, "widen"), (C7, C5E, "widen")]
    picture = draw_morphism_graph(COLUMNS, links)
    check_readable(picture)
    assert len(curves(picture)) == 8 + 4


def test_links_may_skip_a_column() -> None:
    picture = draw_morphism_graph(COLUMNS, [*LINKS, (C3, C7, "widen")])
    check_readable(picture)


def test_more_kinds_than_colours_are_dashed() -> None:
    columns: list[list[Operation]] = [[C3], [Conv(k) for k in range(5, 25, 2)]]
    links = [(C3, op, f"kind {number}") for number, op in enumerate(columns[1])]
    picture = draw_morphism_graph(columns, links)
    check_readable(picture)
    looks = {(curve.stroke, curve.dash) for curve in curves(picture)}
    assert len(looks) == len(links)


@pytest.mark.parametrize("columns", [[], [[]], [[C3]], [[C3], [], [C7]]])
def test_small_graphs(columns: list[list[Operation]]) -> None:
    check_readable(draw_morphism_graph(columns, []))


def test_a_large_graph_is_readable() -> None:
    columns: list[list[Operation]] = [[Conv(3 + 2 * i, d) for i in range(13)] for d in range(1, 7)]
    links: list[tuple[Operation, Operation, str]] = []
    for left, right in pairwise(columns):
        for i, op in enumerate(left):
            for j, name in ((0, "grow dilation"), (3, "widen"), (7, "grow kernel")):
                links.append((op, right[(i + j) % len(right)], name))
    check_readable(draw_morphism_graph(columns, links))


def test_the_graph_refuses_what_it_cannot_place() -> None:
    with pytest.raises(ValueError, match="twice"):
        draw_morphism_graph([[C3], [C3]], [])
    with pytest.raises(ValueError, match="'conv 9x9' is in a link, but in no column"):
        draw_morphism_graph(COLUMNS, [(C3, Conv(9), "grow kernel")])

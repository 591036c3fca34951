"""The picture of a confusion matrix: everything in its place, and readable."""

import random
from collections.abc import Sequence
from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.drawing.confusion import RIGHT, WRONG, draw_confusion
from prnas.drawing.picture import Box, Picture, Text, to_svg
from tests.support.geometry import extent, overlap

Counts = list[list[int]]


def made(classes: int, seed: int = 0) -> Counts:
    generator = random.Random(seed)
    counts = [[0] * classes for _ in range(classes)]
    for true in range(classes):
        for _ in range(20):
            taken = true if generator.random() < 0.7 else generator.randrange(classes)
            counts[true][taken] += 1
    return counts


def texts(picture: Picture) -> list[Text]:
    return [item for item in picture.items if isinstance(item, Text)]


def cells(picture: Picture, colors: str) -> list[Box]:
    """Painted boxes of the matrix and of the key, of one of the two hues."""
    boxes = [item for item in picture.items if isinstance(item, Box) and item.fill != "none"]
    return [box for box in boxes if _hue(box.fill) == colors]


def _hue(color: str) -> str:
    red, _, blue = _rgb(color)
    return "blue" if blue > red else "orange" if red > blue else "grey"


def _rgb(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def luminance(color: str) -> float:
    linear = [
        value / 255 / 12.92 if value <= 10 else ((value / 255 + 0.055) / 1.055) ** 2.4
        for value in _rgb(color)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("classes", [1, 2, 5, 10, 12, 13, 20, 21, 40, 41, 100, 150])
@pytest.mark.parametrize("name", ["c{}", "automobile {}", "a name that is much too long {}"])
def test_texts_are_on_the_picture_and_apart(classes: int, name: str) -> None:
    names = [name.format(one) for one in range(classes)]
    picture = draw_confusion(made(classes), names, "A title")
    extents = [extent(text) for text in texts(picture)]
    for area in extents:
        assert area.x >= 0
        assert area.y >= 0
        assert area.x + area.width <= picture.width
        assert area.y + area.height <= picture.height
    assert not any(overlap(first, second) for first, second in combinations(extents, 2))
    assert min(text.size for text in texts(picture)) >= 4.5


@pytest.mark.parametrize("classes", [2, 20, 21, 100])
def test_cells_are_where_their_counts_are(classes: int) -> None:
    counts = made(classes)
    picture = draw_confusion(counts, [str(one) for one in range(classes)])
    key = 5  # swatches of each hue
    right, wrong = cells(picture, "blue"), cells(picture, "orange")
    assert len(right) == key + sum(counts[one][one] > 0 for one in range(classes))
    mistakes = sum(n > 0 for i, row in enumerate(counts) for j, n in enumerate(row) if i != j)
    assert len(wrong) == key + mistakes
    frame = next(item for item in picture.items if isinstance(item, Box) and item.fill == "none")
    inside = [box for box in right if box.y < frame.y + frame.height]
    width, height = frame.width / classes, frame.height / classes
    for box in inside:
        column = int((box.x + box.width / 2 - frame.x) / width)
        row = int((box.y + box.height / 2 - frame.y) / height)
        assert row == column
        assert counts[row][column] > 0


def numbers(counts: Counts) -> list[str]:
    picture = draw_confusion(counts, [f"class {one}" for one in range(len(counts))])
    frame = next(item for item in picture.items if isinstance(item, Box) and item.fill == "none")
    return [
        text.text
        for text in texts(picture)
        if frame.x < text.x < frame.x + frame.width
        and frame.y < text.baseline < frame.y + frame.height
    ]


def test_percentages_of_rows_never_round_to_none_or_all() -> None:
    assert numbers([[1, 3], [5, 5]]) == ["25", "75", "50", "50"]
    assert numbers([[9999, 1], [0, 7]]) == ["99", "<1", "100"]


def test_few_classes_have_numbers_and_many_have_none() -> None:
    assert numbers(made(20))
    assert not numbers(made(21))
    said = {text.text for text in texts(draw_confusion(made(20), [""] * 20))}
    assert "images" in said
    said = {text.text for text in texts(draw_confusion(made(21), [""] * 21))}
    assert "images" not in said


def test_columns_have_names_where_they_fit_and_numbers_elsewhere() -> None:
    def shown(names: Sequence[str]) -> list[str]:
        return [text.text for text in texts(draw_confusion(made(len(names)), names))]

    assert shown(["cat", "dog"]).count("cat") == 2
    long = shown(["a very long name of a class", "dog"])
    assert long.count("dog") == 1
    assert long.count("0") >= 2  # at the row and at the column
    many = shown([f"c{one}" for one in range(30)])
    assert many.count("c7") == 1
    assert many.count("7") == 2


def test_a_class_without_images_is_marked() -> None:
    picture = draw_confusion([[3, 1], [0, 0]], ["cat", "dog"])
    grey = cells(picture, "grey")
    assert len(grey) == 1
    assert any(text.text == "0" for text in texts(picture))


def test_of_too_many_classes_the_worst_are_shown() -> None:
    classes = 130
    counts = [[0] * classes for _ in range(classes)]
    for one in range(classes):
        counts[one][one] = 9
    for one in range(0, 100, 2):
        counts[one][one + 1] = 1  # both have a mistake
    picture = draw_confusion(counts, [f"name{one}" for one in range(classes)])
    said = {text.text for text in texts(picture)}
    assert {f"name{one}" for one in range(100)} <= said
    assert "name100" not in said
    assert "the 100 of 130 classes with the most mistakes" in said


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n))))
def test_numbers_stand_out_from_their_cells(pair: tuple[int, int]) -> None:
    count, total = pair
    picture = draw_confusion([[count, total - count], [total - count, count]], ["a", "b"])
    boxes = [item for item in picture.items if isinstance(item, Box)]
    checked = 0
    for text in texts(picture):
        x, y = text.x + text.width / 2, text.baseline - 0.3 * text.size
        under = [
            box
            for box in boxes
            if box.x < x < box.x + box.width and box.y < y < box.y + box.height
            if box.fill != "none"
        ]
        if under:
            checked += 1
            assert contrast(text.color, under[-1].fill) >= 4
    assert checked >= 10


def test_darker_is_more() -> None:
    for stops in (RIGHT, WRONG):
        lights = [luminance(one) for one in stops]
        assert lights == sorted(lights, reverse=True)
        assert lights[0] - lights[-1] > 0.9


def test_wrong_sizes_and_hostile_names() -> None:
    with pytest.raises(ValueError, match="2 classes need 2 x 2 counts"):
        draw_confusion([[1, 2]], ["a", "b"])
    with pytest.raises(ValueError, match="no classes"):
        draw_confusion([], [])
    svg = to_svg(draw_confusion(made(2), ["<script>\0", "\n"], "</svg>"))
    ElementTree.fromstring(svg.encode())  # noqa: S314 - our own text
    assert "<script>" not in svg

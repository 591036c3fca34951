"""Indices, strings and genotypes of NAS-Bench-201 are the same cells."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.io.errors import FormatError
from prnas.space import zoo
from prnas.space.genotype import Edge, Genotype
from prnas.space.nasbench201.cells import (
    NUM_CELLS,
    genotype_of,
    index_of,
    index_of_string,
    string_of,
)
from prnas.space.operations import Conv, PlainConv, Pool, Skip, Zero
from prnas.space.shape import NASBENCH201

STRING = "|nor_conv_3x3~0|+|none~0|avg_pool_3x3~1|+|skip_connect~0|nor_conv_1x1~1|skip_connect~2|"
indices = st.integers(0, NUM_CELLS - 1)


def test_a_string_says_which_operation_is_where() -> None:
    cell = genotype_of(index_of_string(STRING)).normal
    assert {(edge.input, state): edge.op for state, edge in cell.edges} == {
        (0, 1): PlainConv(3),
        (0, 2): Zero(),
        (1, 2): Pool("avg", 3),
        (0, 3): Skip(),
        (1, 3): PlainConv(1),
        (2, 3): Skip(),
    }
    assert cell.concat == (3,)
    assert cell.shape == NASBENCH201


@given(indices)
def test_all_ways_there_and_back(index: int) -> None:
    assert index_of_string(string_of(index)) == index
    genotype = genotype_of(index)
    assert index_of(genotype) == index
    assert index_of(Genotype.loads(genotype.dumps())) == index


def test_the_ends() -> None:
    assert string_of(0).count("none") == 6
    assert string_of(NUM_CELLS - 1).count("avg_pool_3x3") == 6
    for index in (-1, NUM_CELLS, True, "0"):
        with pytest.raises(ValueError, match="index must be from 0 to 15624"):
            string_of(index)  # pyright: ignore[reportArgumentType]


def test_other_genotypes_are_none_of_its_cells() -> None:
    assert index_of(zoo.get("darts-v1")) is None
    cell = genotype_of(0).normal
    (edge,), *others = cell.nodes
    for op in (Conv(3), PlainConv(5), Pool("max", 3)):
        assert index_of(Genotype(replace(cell, nodes=((Edge(0, op),), *others)))) is None
    assert index_of(Genotype(replace(cell, nodes=((edge,), *others)))) == 0
    assert index_of(Genotype(replace(cell, concat=(2, 3)))) is None
    assert index_of(Genotype(replace(cell, nodes=cell.nodes[:2], concat=(2,)))) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must be |op~0|+|op~0|op~1|+|op~0|op~1|op~2|"),
        (STRING[:-1], "must be |op~0|"),
        (STRING + STRING, "must be |op~0|"),
        (STRING.replace("~2", "~1"), "must be |op~0|"),
        (STRING.replace("none", "NONE"), "must be |op~0|"),
        (STRING.replace("none", "n\u00f3ne"), "must be |op~0|"),
        (STRING.replace("none", "nor_conv_7x7"), "'nor_conv_7x7'. Did you mean 'nor_conv_"),
        (STRING.replace("none", "__import__"), "no operation of NAS-Bench-201"),
        ("|" * 10_000_000, "must be |op~0|"),
        ("\x00\x1b[2J", "must be |op~0|"),
    ],
)
def test_a_hostile_string_is_refused_in_one_message(text: str, said: str) -> None:
    with pytest.raises(FormatError) as error:
        index_of_string(text)
    assert len(error.value.problems) == 1
    assert said in str(error.value)
    assert len(str(error.value)) < 400


@given(indices, st.data())
def test_a_changed_string_is_another_cell_or_none(index: int, data: st.DataObject) -> None:
    text = string_of(index)
    place = data.draw(st.integers(0, len(text) - 1))
    changed = text[:place] + data.draw(st.text(max_size=3)) + text[place + 1 :]
    try:
        found = index_of_string(changed)
    except FormatError:
        assert changed != text
    else:
        assert string_of(found) == changed.strip()

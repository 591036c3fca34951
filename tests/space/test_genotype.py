import json
from typing import Any

import pytest
from hypothesis import given

from prnas.io.errors import FormatError
from prnas.space.genotype import Cell, Edge, Genotype
from prnas.space.operations import Conv, Pool, Skip, Zero
from tests.support.strategies import genotypes

CELL = Cell(
    ((Edge(0, Conv(3)), Edge(1, Skip())), (Edge(2, Conv(3, 1, (1,))), Edge(1, Pool("max")))), (2, 3)
)
GENOTYPE = Genotype(CELL, CELL)


@given(genotypes)
def test_json_goes_both_ways(genotype: Genotype) -> None:
    assert Genotype.loads(genotype.dumps()) == genotype
    assert Genotype.loads(json.dumps(genotype.to_json())) == genotype
    assert json.loads(genotype.dumps()) == genotype.to_json()


def changed(place: str, value: Any) -> dict[str, Any]:
    """The example's JSON with one value replaced (or, by `...`, removed)."""
    data: dict[str, Any] = json.loads(GENOTYPE.dumps())
    here: Any = data
    *path, last = [int(key) if key.isdecimal() else key for key in place.split(".")]
    for key in path:
        here = here[key]
    if value is ...:
        del here[last]
    else:
        here[last] = value
    return data


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("normal.nodes.0.0.op.kernel", 4, "normal.nodes[0][0].op: kernel must be odd, got 4"),
        (
            "normal.nodes.0.0.op.kernel",
            3.5,
            "normal.nodes[0][0].op.kernel: must be a valid integer",
        ),
        (
            "normal.nodes.0.0.op.kernel",
            True,
            "normal.nodes[0][0].op.kernel: must be a valid integer",
        ),
        ("normal.nodes.0.0.op.kernel", 10**9, "kernel must be a whole number from 1 to 1000"),
        ("normal.nodes.0.0.op.type", "cnv", "op: unknown type 'cnv'. Did you mean 'conv'?"),
        ("normal.nodes.0.0.op.type", ..., "normal.nodes[0][0].op: must have a 'type'"),
        ("normal.nodes.0.0.op.krnel", 1, "op.krnel: unknown key. Did you mean 'kernel'?"),
        ("normal.nodes.0.0.op", ..., "normal.nodes[0][0].op: is missing"),
        ("normal.nodes.0.0.op", "conv 4x4", "normal.nodes[0][0].op: kernel must be odd, got 4"),
        ("normal.nodes.0.0.op", "zero", "a genotype has no 'zero' operation"),
        ("normal.nodes.0.0.input", 2, "nodes[0][0].input must be a state before the node (0 to 1)"),
        ("normal.nodes.0.0.input", -1, "input must be a whole number from 0"),
        ("normal.nodes.0.0.input", 1, "nodes[0] reads state 1 twice"),
        ("normal.nodes.0", [], "normal: nodes[0] must be two edges"),
        ("reduction.nodes", [], "reduction: a cell has 1 to 64 nodes, got 0"),
        ("normal.concat", [2, 2], "normal: concat names a state twice"),
        ("normal.concat", [1], "normal: concat must name nodes, states 2 to 3, got 1"),
        ("normal.concat", [], "normal: concat must name at least one state"),
        ("normal.concat", "all", "normal.concat: must be a valid array"),
        (
            "normal.name",
            "x",
            "normal.name: unknown key. Choose from: concat, nodes, repeated_inputs, shape",
        ),
        ("reduction", ..., "reduction: is missing"),
        ("reduktion", {}, "reduktion: unknown key. Did you mean 'reduction'?"),
        ("version", 2, "version: 2 is not known; this release reads version 1"),
        ("version", True, "version: True is not known"),
        ("version", 1.0, "version: 1.0 is not known"),
        ("normal.nodes.0.0.input", 1e500, "normal.nodes[0][0].input: must be a finite number"),
        ("normal.nodes.0.0.op", "\ud800", "op: holds half a character"),
        ("version", ..., "version: None is not known"),
        ("format", "onnx", "format: must be 'prnas-genotype', got 'onnx'"),
    ],
)
def test_a_malformed_file_names_the_place(place: str, value: Any, said: str) -> None:
    with pytest.raises(FormatError) as error:
        Genotype.from_json(changed(place, value))
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1, column 1: not valid JSON"),
        ('{\n "format": ', "line 2, column 12: not valid JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": 1, "a": 2}', "the key 'a' is given twice"),
        ('{"a": ' + "9" * 10_000 + "}", "a number is too large"),
        ("[]", "the file must hold an object, not a list"),
        ("null", "the file must hold an object, not null"),
        (" " * 5_000_000, "more than 4,000,000 characters"),
    ],
)
def test_what_is_not_json(text: str, said: str) -> None:
    with pytest.raises(FormatError) as error:
        Genotype.loads(text)
    assert said in str(error.value)


def test_several_problems_come_in_one_message() -> None:
    data = changed("normal.concat", "all")
    data["reduction"]["nodes"][0][0]["op"]["kernel"] = 2
    with pytest.raises(FormatError) as error:
        Genotype.from_json(data)
    assert len(error.value.problems) == 2
    assert str(error.value).startswith("2 problems\n")


def test_repeated_inputs_must_be_asked_for() -> None:
    node = (Edge(0, Conv(3)), Edge(0, Conv(3)))
    with pytest.raises(ValueError, match="two inputs must differ unless 'repeated_inputs'"):
        Cell((node,), (2,))
    assert Cell((node,), (2,), repeated_inputs=True).num_nodes == 1


def test_zero_and_foreign_things_are_no_edges() -> None:
    with pytest.raises(ValueError, match="no 'zero' operation"):
        Cell(((Edge(0, Zero()), Edge(1, Skip())),), (2,))
    with pytest.raises(ValueError, match="op must be an operation"):
        Edge(0, "skip")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="normal must be a Cell"):
        Genotype("a", "b")  # pyright: ignore[reportArgumentType]

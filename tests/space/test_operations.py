import json

import pytest
from hypothesis import given
from pydantic import TypeAdapter

from prnas.space.operations import (
    CATEGORIES,
    OPERATIONS,
    Conv,
    Conv1x7x1,
    Operation,
    OperationField,
    PlainConv,
    Pool,
    Skip,
    Zero,
    from_label,
    to_json,
)
from tests.support.strategies import operations

ADAPTER: TypeAdapter[Operation] = TypeAdapter(OperationField)


@pytest.mark.parametrize(
    ("op", "label"),
    [
        (Conv(5), "conv 5x5"),
        (Conv(3, 2, (1, 2)), "conv 3x3 d2 ×[1,2]"),
        (Conv(3, 1, (1,)), "conv 3x3 ×[1]"),
        (Pool("max", 3), "max 3x3"),
        (Pool("avg", 5), "avg 5x5"),
        (Skip(), "skip"),
        (Zero(), "zero"),
        (Conv1x7x1(), "conv 1x7 7x1"),
        (PlainConv(3), "plain 3x3"),
    ],
)
def test_label(op: Operation, label: str) -> None:
    assert op.label == label
    assert from_label(label.replace("×", "x")) == op


@pytest.mark.parametrize("cls", OPERATIONS.values())
def test_a_class_says_what_the_rest_asks(cls: type[Operation]) -> None:
    for label in cls.examples:
        op = from_label(label)
        assert type(op) is cls
        assert op.cost > 0
    assert cls.examples
    assert [other for other in OPERATIONS.values() if other.rank == cls.rank] == [cls]


def test_categories_are_in_the_order_of_the_classes() -> None:
    assert CATEGORIES[:4] == ["conv", "pool", "skip", "zero"]


@given(operations)
def test_labels_and_json_go_both_ways(op: Operation) -> None:
    assert from_label(op.label) == op
    assert ADAPTER.validate_json(json.dumps(to_json(op))) == op
    assert ADAPTER.validate_json(json.dumps(op.label)) == op


@given(operations, operations)
def test_equal_values_are_one_value_and_all_are_ordered(one: Operation, other: Operation) -> None:
    assert (one == other) == (one.label == other.label)
    if one == other:
        assert hash(one) == hash(other)
    assert (one < other) + (one == other) + (one > other) == 1
    assert (one <= other) == (one < other or one == other)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Conv(4), "kernel must be odd, got 4"),
        (lambda: Conv(0), "kernel must be a whole number from 1 to 1000, got 0"),
        (lambda: Conv(True), "kernel must be a whole number from 1 to 1000, got True"),
        (lambda: Conv("3"), "kernel must be a whole number from 1 to 1000, got '3'"),  # pyright: ignore[reportArgumentType]
        (lambda: Conv(3, 0), "dilation must be a whole number from 1 to 1000, got 0"),
        (lambda: Conv(3, 1, (1, 0)), "an expansion must be a whole number from 1 to 1000, got 0"),
        (lambda: PlainConv(2), "kernel must be odd, got 2"),
        (lambda: from_label("plain 3x5"), "no operation is called 'plain 3x5'"),
        (lambda: Pool("min"), "kind of pooling must be 'max' or 'avg', got 'min'"),  # pyright: ignore[reportArgumentType]
        (lambda: Pool("max", 1), "kernel must be a whole number from 3 to 1000, got 1"),
        (lambda: Conv(3, 1, 5), "expansions must be a list, got 5"),  # pyright: ignore[reportArgumentType]
        (lambda: from_label("conv 3x3 ×[,]"), "no operation is called"),
        (lambda: from_label("conv \u0663x\u0663"), "no operation is called"),
        (lambda: from_label("conv 3x5"), "no operation is called 'conv 3x5'"),
        (lambda: from_label("conv 3x3 x[1,,x]"), "no operation is called"),
    ],
)
def test_a_wrong_value_is_refused_at_birth(make: object, said: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=r"must|no operation") as error:
        make()
    assert said in str(error.value)


def test_operations_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Conv(3).kernel = 5  # pyright: ignore[reportAttributeAccessIssue]


def test_lists_of_expansions_become_tuples() -> None:
    assert Conv(3, 1, [1, 2]) == Conv(3, 1, (1, 2))  # pyright: ignore[reportArgumentType]

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.space.analysis.counting import discoverable
from prnas.space.morphisms import (
    GROW_DILATION,
    GROW_KERNEL,
    INSERT_EXPANSION,
    MORPHISMS,
    SHRINK_DILATION,
    SHRINK_KERNEL,
    WIDEN,
    Morphism,
    has_morphisms,
    morphs,
)
from prnas.space.operations import Conv, Operation, PlainConv, Pool, Skip
from prnas.space.setting import SETTINGS, Limits
from tests.support.strategies import convs_within, limits, operations

WIDE = Limits(1, 9, 3, None, None)


@pytest.mark.parametrize(
    ("morphism", "parent", "child"),
    [
        (GROW_KERNEL, Conv(3, 2, (1,)), Conv(5, 2, (1,))),
        (SHRINK_KERNEL, Conv(3), Conv(1)),
        (GROW_KERNEL, PlainConv(1), PlainConv(3)),
        (SHRINK_KERNEL, PlainConv(3), PlainConv(1)),
        (GROW_DILATION, Conv(3), Conv(3, 2)),
        (SHRINK_DILATION, Conv(3, 2), Conv(3)),
        (INSERT_EXPANSION, Conv(3, 1, (2,)), Conv(3, 1, (2, 1))),
        (WIDEN, Conv(3, 1, (2, 1, 1)), Conv(3, 1, (2, 2, 1))),
        (WIDEN, Conv(3, 1, (1, 1)), Conv(3, 1, (2, 1))),
    ],
)
def test_what_a_morphism_makes(
    morphism: Morphism[Conv], parent: Operation, child: Operation
) -> None:
    assert morphism.legal(parent, WIDE)
    assert morphism.apply(parent) == child


@pytest.mark.parametrize(
    ("morphism", "op", "bounds"),
    [
        (GROW_KERNEL, Conv(7), Limits(3, 7)),
        (SHRINK_KERNEL, Conv(3), Limits(3, 7)),
        (GROW_KERNEL, PlainConv(3), Limits(1, 3)),
        (SHRINK_KERNEL, PlainConv(3), Limits(3, 7)),
        (SHRINK_KERNEL, Conv(3, 2), Limits(1, 7)),  # not to kernel 1 while dilated
        (GROW_DILATION, Conv(3, 2), Limits(3, 7, 2)),
        (GROW_DILATION, Conv(1), Limits(1, 7, 2)),  # a single pixel has nothing to spread
        (SHRINK_DILATION, Conv(3), WIDE),
        (INSERT_EXPANSION, Conv(3, 1, (1,)), Limits(depth_max=1)),
        (INSERT_EXPANSION, Conv(3), Limits(depth_max=0)),
        (WIDEN, Conv(3), WIDE),
        (WIDEN, Conv(3, 1, (5, 5)), Limits(depth_max=2, width_max=5)),
    ],
)
def test_what_is_not_legal(morphism: Morphism[Conv], op: Operation, bounds: Limits) -> None:
    assert not morphism.legal(op, bounds)


def test_widening_asks_for_the_smallest_expansion_alone() -> None:
    bounds = Limits(depth_max=2, width_max=5)
    assert WIDEN.legal(Conv(3, 1, (5, 1)), bounds)
    assert WIDEN.legal(Conv(3, 1, (4, 5)), bounds)
    assert WIDEN.apply(Conv(3, 1, (4, 5))) == Conv(3, 1, (5, 5))


@given(st.data())
def test_legal_children_stay_within_the_limits(data: st.DataObject) -> None:
    bounds = data.draw(limits())
    op = data.draw(convs_within(bounds))
    assert bounds.allows(op)
    children = [child for _, child in morphs(op, bounds)]
    assert all(bounds.allows(child) for child in children)
    assert op not in children
    assert len(set(children)) == len(children)


@given(st.data())
def test_kernel_and_dilation_morphisms_have_inverses(data: st.DataObject) -> None:
    bounds = data.draw(limits())
    op = data.draw(convs_within(bounds))
    for there, back in (
        (GROW_KERNEL, SHRINK_KERNEL),
        (SHRINK_KERNEL, GROW_KERNEL),
        (GROW_DILATION, SHRINK_DILATION),
        (SHRINK_DILATION, GROW_DILATION),
    ):
        if there.legal(op, bounds):
            child = there.apply(op)
            # A 1x1 kernel is grown back by the limits' leave alone: shrinking asks about dilation.
            assert back.legal(child, bounds)
            assert back.apply(child) == op


@given(operations)
def test_a_morphism_applies_to_its_own_class_alone(op: Operation) -> None:
    applicable = [one for one in MORPHISMS.values() if isinstance(op, one.operation)]
    assert has_morphisms(op) == bool(applicable)
    assert {one.name for one, _ in morphs(op, WIDE)} <= {one.name for one in applicable}
    for morphism in MORPHISMS.values():
        if morphism not in applicable:
            assert not morphism.legal(op, WIDE)
            with pytest.raises(ValueError, match=f"'{morphism.name}' does not apply to"):
                morphism.apply(op)


def test_a_morphism_for_pooling_is_one_more_entry(pooling_grows: Morphism[Pool]) -> None:
    bounds = SETTINGS["darts-like"].limits
    assert morphs(Pool("max", 3), bounds) == ((pooling_grows, Pool("max", 5)),)
    assert morphs(Skip(), bounds) == ()
    setting = SETTINGS["darts-like"]
    assert {Pool("max", 5), Pool("avg", 7)} <= set(discoverable(setting, 2))

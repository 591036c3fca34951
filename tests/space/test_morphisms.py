import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.space.morphisms import (
    GROW_DILATION,
    GROW_KERNEL,
    INSERT_EXPANSION,
    MORPHISMS,
    SHRINK_DILATION,
    SHRINK_KERNEL,
    WIDEN,
    Morphism,
    morphs,
)
from prnas.space.operations import Conv, Operation, Pool, Skip
from prnas.space.setting import SETTINGS, Limits
from tests.support.strategies import convs_within, limits, operations

WIDE = Limits(1, 9, 3, None, None)


@pytest.mark.parametrize(
    ("morphism", "parent", "child"),
    [
        (GROW_KERNEL, Conv(3, 2, (1,)), Conv(5, 2, (1,))),
        (SHRINK_KERNEL, Conv(3), Conv(1)),
        (GROW_DILATION, Conv(3), Conv(3, 2)),
        (SHRINK_DILATION, Conv(3, 2), Conv(3)),
        (INSERT_EXPANSION, Conv(3, 1, (2,)), Conv(3, 1, (2, 1))),
        (WIDEN, Conv(3, 1, (2, 1, 1)), Conv(3, 1, (2, 2, 1))),
        (WIDEN, Conv(3, 1, (1, 1)), Conv(3, 1, (2, 1))),
    ],
)
def test_what_a_morphism_makes(morphism: Morphism, parent: Conv, child: Conv) -> None:
    assert morphism.legal(parent, WIDE)
    assert morphism.apply(parent) == child


@pytest.mark.parametrize(
    ("morphism", "op", "bounds"),
    [
        (GROW_KERNEL, Conv(7), Limits(3, 7)),
        (SHRINK_KERNEL, Conv(3), Limits(3, 7)),
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
def test_what_is_not_legal(morphism: Morphism, op: Conv, bounds: Limits) -> None:
    assert not morphism.legal(op, bounds)


def test_widening_asks_for_the_smallest_expansion_alone() -> None:
    bounds = Limits(depth_max=2, width_max=5)
    assert WIDEN.legal(Conv(3, 1, (5, 1)), bounds)
    assert WIDEN.legal(Conv(3, 1, (4, 5)), bounds)
    assert WIDEN.apply(Conv(3, 1, (4, 5))) == Conv(3, 1, (5, 5))


def test_only_widening_and_larger_kernels_keep_the_function() -> None:
    keeping = {name for name, morphism in MORPHISMS.items() if morphism.preserving}
    assert keeping == {"grow kernel", "widen"}


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
def test_only_convolutions_are_morphed(op: Operation) -> None:
    if isinstance(op, Conv):
        return
    assert morphs(op, WIDE) == ()
    with pytest.raises(ValueError, match="morphs convolutions"):
        WIDEN.apply(op)


def test_a_morphism_for_pooling_is_one_more_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    def grown(op: Operation) -> Operation:
        assert isinstance(op, Pool)
        return Pool(op.kind, op.kernel + 2)

    def small(op: Operation, _: Limits) -> bool:
        return isinstance(op, Pool) and op.kernel < 7

    monkeypatch.setitem(MORPHISMS, "grow pool", Morphism("grow pool", False, small, grown))
    morphs.cache_clear()
    try:
        bounds = SETTINGS["darts-like"].limits
        assert [child for _, child in morphs(Pool("max", 3), bounds)] == [Pool("max", 5)]
        assert morphs(Skip(), bounds) == ()
    finally:
        morphs.cache_clear()

"""The best choice within bounds, compared with trying all choices."""

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prnas.space import best_fit as module
from prnas.space.best_fit import Choice, Costs, Group, Option, best_fit, least_cost


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Group], Costs]:
    kinds = draw(st.integers(1, 3))
    costs = st.tuples(*[st.integers(0, 5)] * kinds)
    option = st.builds(Option, st.integers(-3, 8), costs)
    slot = st.lists(option, min_size=1, max_size=3).map(tuple)
    groups: list[Group] = []
    for _ in range(draw(st.integers(1, 3))):
        slots = tuple(draw(st.lists(slot, min_size=1, max_size=3)))
        groups.append(Group(slots, draw(st.integers(0, len(slots)))))
    return groups, draw(st.tuples(*[st.integers(0, 14)] * kinds))


def taken(groups: Sequence[Group], choice: Choice) -> list[Option]:
    return [
        group.slots[slot][option]
        for group, options in zip(groups, choice, strict=True)
        for slot, option in enumerate(options)
        if option is not None
    ]


def summed(options: Sequence[Option], kinds: int) -> tuple[int, Costs]:
    costs = tuple(sum(option.costs[kind] for option in options) for kind in range(kinds))
    return sum(option.value for option in options), costs


def every_choice(groups: Sequence[Group]) -> list[list[Option]]:
    by_group = [
        [
            list(options)
            for slots in combinations(group.slots, group.number)
            for options in product(*slots)
        ]
        for group in groups
    ]
    return [[one for part in parts for one in part] for parts in product(*by_group)]


@given(problems())
def test_nothing_within_the_bounds_is_better(problem: tuple[list[Group], Costs]) -> None:
    groups, bounds = problem
    sums = [summed(options, len(bounds)) for options in every_choice(groups)]
    values = [v for v, costs in sums if all(a <= b for a, b in zip(costs, bounds, strict=True))]
    choice = best_fit(groups, bounds)
    for kind in range(len(bounds)):
        assert least_cost(groups, kind) == min(costs[kind] for _, costs in sums)
    if choice is None:
        assert not values
        return
    value, costs = summed(taken(groups, choice), len(bounds))
    assert value == max(values)
    assert all(a <= b for a, b in zip(costs, bounds, strict=True))
    for group, options in zip(groups, choice, strict=True):
        assert sum(option is not None for option in options) == group.number


# The best is known, and the bound at this price does not rule out what is worse.
@example(([Group(((Option(1, (0,)), Option(2, (2,))),), 1)], (2,)), [0, 0, 0, 1, 0, 0])
@given(problems(), st.lists(st.sampled_from([0, 1, 2, 3, 2**20]), min_size=6, max_size=6))
def test_prices_save_time_and_change_nothing(
    problem: tuple[list[Group], Costs], numbers: list[int]
) -> None:
    """Whatever they are, and whatever choice was found with others before."""
    groups, bounds = problem
    expected = best_fit(groups, bounds)
    first, last = ([number << 24 for number in part] for part in (numbers[:3], numbers[3:]))

    def prices(relaxed: Any) -> list[int]:
        relaxed._solve(first[: len(bounds)])  # which remembers it if it is within the bounds
        return last[: len(bounds)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module._Relaxed, "good_prices", prices)  # pyright: ignore
        found = best_fit(groups, bounds)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        values = [summed(taken(groups, one), len(bounds))[0] for one in (found, expected)]
        assert values[0] == values[1]


def test_many_equal_slots_are_no_riddle() -> None:
    """Of 40 slots as good as each other, 17 must take the cheaper option: 9e10 ways to do so."""
    dear, cheap = Option(6, (3, 1)), Option(4, (1, 2))
    groups = [Group(((dear, cheap),) * 4, 4) for _ in range(10)]
    choice = best_fit(groups, (120 - 2 * 17, 1000))
    assert choice is not None
    assert taken(groups, choice).count(cheap) == 17


def test_a_group_is_checked() -> None:
    option = Option(1, (1,))
    with pytest.raises(ValueError, match="some of its slots"):
        Group(((option,),), 2)
    with pytest.raises(ValueError, match="some of its slots"):
        Group(((),), 1)

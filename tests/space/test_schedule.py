from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.space.schedule import Cycle, Schedule, paper_schedule


def test_the_papers_table() -> None:
    schedule = paper_schedule()
    rows = [(c.epochs, c.grace_epochs, c.morphisms, c.candidates) for c in schedule.cycles]
    assert rows == [
        (15, 5, 3, 6),
        (15, 5, 3, 6),
        *[(10, 3, 3, 6)] * 3,
        (10, 3, 0, 4),
        (10, 3, 0, 3),
        (10, 3, 0, 2),
        (10, 3, 0, 1),
    ]
    assert schedule.num_epochs == 100
    assert schedule.num_replacements == 5
    assert schedule.pool_problems(4) == []


def test_every_problem_in_one_message() -> None:
    with pytest.raises(ValueError, match="cycles") as error:
        Schedule(
            (
                Cycle(2, 3, 0, 4),
                Cycle(0, 0, 5, 4),
                Cycle(5, 1, 1, 2, cells=2, channels=0, skip_dropout=1.0),
            )
        )
    said = str(error.value)
    for problem in (
        "cycles[0]: grace_epochs (3) exceed the cycle's epochs (2)",
        "cycles[1]: epochs must be a whole number from 1",
        "cycles[1]: morphisms (5) must be fewer than candidates (4)",
        "cycles[2]: cells must be a whole number from 3",
        "cycles[2]: channels must be a whole number from 1",
        "cycles[2]: skip_dropout must be at least 0 and below 1, got 1.0",
        "cycles[2]: the last cycle must end with one candidate on every edge, got candidates = 2",
        "cycles[2]: the last cycle adds no children, got morphisms = 1",
    ):
        assert problem in said


def test_an_empty_schedule_is_none() -> None:
    with pytest.raises(ValueError, match="at least one cycle"):
        Schedule(())


def test_pools_that_never_reach_their_size() -> None:
    schedule = Schedule((Cycle(1, 0, 0, 5), Cycle(1, 0, 0, 1)))
    assert schedule.pool_problems(8) == []
    assert schedule.pool_problems(4) == [
        "cycles[0]: 5 candidates are to stay, but the pools hold 4"
    ]


rows = st.tuples(st.integers(0, 4), st.integers(-1, 4), st.integers(-1, 4), st.integers(0, 4))


@given(rows)
def test_what_is_accepted_is_what_is_sound(row: tuple[int, int, int, int]) -> None:
    epochs, grace, morphisms, candidates = row
    sound = epochs >= 1 and 0 <= grace <= epochs and 0 <= morphisms < max(candidates, 1)
    sound = sound and candidates >= 1
    try:
        Schedule((Cycle(*row), Cycle(1, 0, 0, 1)))
        accepted = True
    except ValueError:
        accepted = False
    assert accepted == sound


def test_as_many_children_as_candidates_leave_no_parent() -> None:
    with pytest.raises(ValueError, match="so that a parent stays"):
        Schedule((Cycle(1, 0, 3, 3), Cycle(1, 0, 0, 1)))


def test_wrong_types_are_problems_too() -> None:
    with pytest.raises(ValueError, match="epochs must be a whole number") as error:
        Schedule((Cycle("a", 0, 0, 1, skip_dropout="b"),))  # pyright: ignore[reportArgumentType]
    assert "skip_dropout must be at least 0" in str(error.value)
    with pytest.raises(ValueError, match="cycles must be a list"):
        Schedule(3)  # pyright: ignore[reportArgumentType]


def test_the_dropout_of_skips_decays_as_in_p_darts() -> None:
    """Linearly in the grace epochs, exponentially after them; else it is constant."""
    epochs, grace, start = 25, 10, 0.4
    cycle = Cycle(epochs, grace, 0, 1, skip_dropout=start, skip_dropout_decay=0.2)
    assert cycle.skip_dropout_in(0) == pytest.approx(start * 24 / 25)
    assert cycle.skip_dropout_in(grace - 1) == pytest.approx(start * 15 / 25)
    assert cycle.skip_dropout_in(grace) == start
    assert cycle.skip_dropout_in(epochs - 1) == pytest.approx(start * exp(-0.2 * 14))
    constant = Cycle(epochs, grace, 0, 1, skip_dropout=start)
    assert {constant.skip_dropout_in(epoch) for epoch in range(epochs)} == {start}


def test_a_decay_and_a_protection_that_are_none() -> None:
    for bad, problem in (
        ({"skip_dropout_decay": -0.1}, "skip_dropout_decay must be from 0 to 1000, got -0.1"),
        ({"skip_dropout_decay": "fast"}, "skip_dropout_decay must be from 0"),
        ({"protect_conv": 1}, "protect_conv must be true or false, got 1"),
    ):
        with pytest.raises(ValueError, match=problem):
            Schedule((Cycle(1, 0, 0, 1, **bad),))  # pyright: ignore

"""Measured worth: backward elimination, probabilities of parents, and what it decides."""

from collections.abc import Sequence
from math import exp
from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.space.derivation import derive_cell
from prnas.space.edge_pool import EdgePool
from prnas.space.evidence import LEVEL
from prnas.space.genotype import Edge
from prnas.space.operations import Conv, Operation, Pool, Skip, Zero
from prnas.space.pools import CellPools
from prnas.space.setting import SETTINGS
from prnas.space.worth import (
    EdgeWorth,
    Elimination,
    Removed,
    blended,
    last_and_first,
    one_shot,
    worth_probabilities,
)

LIMITS = SETTINGS["darts-like"].limits
OPS: tuple[Operation, ...] = (Skip(), Conv(3), Pool("max", 3), Conv(5), Pool("avg", 3))
IMAGES = 3


class Toy:
    """Candidates that bring skills; the loss of an image is the worth of the skills missing."""

    def __init__(self, skills: Sequence[dict[str, float]]) -> None:
        self.skills, self.asked = skills, []

    def loss(self, removed: Removed) -> tuple[float, ...]:
        values: dict[str, float] = {}
        best: dict[str, float] = {}
        for index, brings in enumerate(self.skills):
            for skill, worth in brings.items():
                values[skill] = max(values.get(skill, 0.0), worth)
                if index not in removed:
                    best[skill] = max(best.get(skill, 0.0), worth)
        missing = sum(values[skill] - best.get(skill, 0.0) for skill in values)
        return tuple(missing * (1 + 0.01 * image) for image in range(IMAGES))

    def run(self, elimination: Elimination) -> EdgeWorth:
        while sets := elimination.ask():
            self.asked.append(sets)
            elimination.tell({removed: self.loss(removed) for removed in sets})
        return elimination.result()


def test_of_twins_exactly_one_survives() -> None:
    # 1 and 3 bring the same: neither is missed while the other is there.
    toy = Toy([{"a": 1.0}, {"b": 5.0}, {"c": 0.5}, {"b": 5.0}, {"d": 0.2}])
    elimination = Elimination(OPS, 2)
    worth = toy.run(elimination)
    assert set(worth.order[:2]) in ({0, 1}, {0, 3})
    # Ranked once, both would have left.
    base = toy.loss(frozenset())
    once = one_shot(
        [[a - b for a, b in zip(toy.loss(frozenset({i})), base, strict=True)] for i in range(5)]
    )
    assert not {1, 3} & set(once.order[:2])


def test_it_asks_for_what_it_needs() -> None:
    toy = Toy([{"a": 3.0}, {"b": 1.0}, {"c": 2.0}])
    elimination = Elimination(OPS[:3], 1)
    passes = elimination.num_passes
    worth = toy.run(elimination)
    rounds = [[set(removed) for removed in sets] for sets in toy.asked]
    assert rounds == [
        [set(), {0}, {1}, {2}],
        [{1}, {0, 1}, {1, 2}],
        [{1, 2}, {0, 1, 2}],
    ]
    distinct = {removed for sets in toy.asked for removed in sets if removed}
    # What was measured in a round is where the next one starts: nothing is asked for twice.
    assert passes == len(distinct) == 6
    assert worth.order == (0, 2, 1)
    assert worth.strengths == pytest.approx([3.03, 1.01, 2.02])
    assert elimination.comparison is not None
    assert (elimination.comparison.survivor, elimination.comparison.pruned) == (0, 2)
    assert elimination.comparison.difference.mean == pytest.approx(1.01)


@given(st.lists(st.floats(0.01, 10), min_size=2, max_size=5, unique=True), st.integers(1, 4))
def test_skills_of_their_own_leave_in_the_order_of_their_worth(
    worths: list[float], keep: int
) -> None:
    toy = Toy([{str(index): worth} for index, worth in enumerate(worths)])
    found = toy.run(Elimination(OPS[: len(worths)], keep))
    assert list(found.order) == sorted(range(len(worths)), key=lambda index: -worths[index])


def test_the_last_convolution_is_protected_and_zero_leaves_first() -> None:
    toy = Toy([{"a": 3.0}, {"b": 0.1}, {"c": 2.0}])
    found = toy.run(Elimination(OPS[:3], 1, protect_conv=True))
    assert found.order[0] == 1
    ops: tuple[Operation, ...] = (Zero(), Conv(3), Skip())
    toy = Toy([{"z": 9.0}, {"b": 0.1}, {"c": 2.0}])
    elimination = Elimination(ops, 1, no_zero=True)
    passes = elimination.num_passes
    found = toy.run(elimination)
    assert found.order == (2, 1, 0)
    assert passes == len({removed for sets in toy.asked for removed in sets if removed})
    only = Elimination((Zero(),), 1, no_zero=True)
    assert Toy([{"z": 1.0}]).run(only).order == (0,)


def test_nothing_leaves_a_pool_that_is_small_enough_yet_it_is_measured() -> None:
    elimination = Elimination(OPS[:2], 3)
    found = Toy([{"a": 1.0}, {"b": 2.0}]).run(elimination)
    assert found.order == (1, 0)
    assert elimination.comparison is None
    assert elimination.num_passes == 2


def test_a_blend_counts_ranks_by_weight_as_much() -> None:
    toy = Toy([{"a": 1.0}, {"b": 2.0}, {"c": 3.0}])
    # By worth 2, 1, 0 and by weight 0, 2, 1: 1 is last by both together, where 0 is by worth.
    # Of 0 and 2 each then leads once, and worth decides.
    found = toy.run(Elimination(OPS[:3], 1, weights=[0.5, 0.1, 0.4]))
    assert found.order == (2, 0, 1)
    assert toy.run(Elimination(OPS[:3], 1)).order == (2, 1, 0)


def test_chance_alone_is_seldom_beyond_chance() -> None:
    """The last kept and the first pruned are neighbours in order: rather too few than too many."""
    generator = Random(3)
    certain: list[bool] = []
    for _ in range(400):
        losses: dict[Removed, list[float]] = {}
        elimination = Elimination(OPS, 2)
        while sets := elimination.ask():
            for removed in sets:
                losses.setdefault(removed, [generator.gauss(0, 1) for _ in range(20)])
            elimination.tell(losses)
        assert elimination.comparison is not None
        certain.append(elimination.comparison.difference.beyond_chance)
    assert fmean(certain) <= LEVEL


def test_probabilities_by_hand() -> None:
    # No noise: a softmax of the standardised worth. Means 0, 1, 2 have the deviation 1.
    found = worth_probabilities([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    total = exp(-1) + 1 + exp(1)
    assert found == pytest.approx([exp(-1) / total, 1 / total, exp(1) / total])
    # In another unit: the same.
    assert worth_probabilities([[0.0, 0.0], [1e-4, 1e-4], [2e-4, 2e-4]]) == pytest.approx(found)
    # Contrasts -1 ± 1 and 1 ± 1: spread 2, noise 2 (1 + 1, over one degree of freedom).
    assert worth_probabilities([[0.0, -2.0], [0.0, 2.0]]) == [0.5, 0.5]
    assert worth_probabilities([[5.0, 7.0]]) == [1.0]
    assert worth_probabilities([[5.0], [7.0]]) == [0.5, 0.5]  # one image: the error is unknown


@given(st.lists(st.lists(st.floats(-1e3, 1e3), min_size=4, max_size=4), min_size=1, max_size=6))
def test_probabilities_are_such_and_follow_the_worth(samples: list[list[float]]) -> None:
    found = worth_probabilities(samples)
    assert sum(found) == pytest.approx(1)
    assert all(value > 0 for value in found)
    means = list(map(fmean, samples))
    for a, p in zip(means, found, strict=True):
        for b, q in zip(means, found, strict=True):
            assert p >= q or a < b + 1e-9


def worth_of(*means: float, weighed: tuple[float, ...] | None = None) -> EdgeWorth:
    found = one_shot([[mean, mean] for mean in means])
    return EdgeWorth(found.samples, found.order, found.strengths, weighed)


def test_worth_prunes_and_draws_parents() -> None:
    pool = EdgePool.initial((Skip(), Conv(3), Pool("max", 3), Pool("avg", 3)))
    weights = [9.0, 0.0, 0.0, 0.0]  # say the opposite
    worth = worth_of(0.0, 1.0, 2.0, -1.0)
    after, change = pool.evolve(weights, 2, 1, LIMITS, Random(1), worth=worth)
    assert {pruned.op for pruned in change.pruned} == {Skip(), Pool("avg", 3)}
    assert Conv(3) in after.candidates
    everything = worth.probabilities(range(4))
    assert [pruned.probability for pruned in change.pruned] == [everything[0], everything[3]]
    (child,) = change.added
    assert (
        child.parent_probability
        == dict(zip([1, 2], worth.probabilities([1, 2]), strict=True))[
            1 if child.parent == Conv(3) else 2
        ]
    )


def test_half_of_a_blend_is_by_weights() -> None:
    worth = worth_of(0.0, 1.0, weighed=(0.6, 0.2))
    measured = worth_of(0.0, 1.0).probabilities([0, 1])
    expected = [(measured[0] + 0.75) / 2, (measured[1] + 0.25) / 2]
    assert worth.probabilities([0, 1]) == pytest.approx(expected)


def test_derivation_keeps_the_edges_whose_operations_are_missed_most() -> None:
    pools = CellPools(2, (EdgePool.initial((Conv(3), Skip(), Zero())),) * 5)
    weights = [[0.0, 0.0, 0.0]] * 5
    worths = [
        worth_of(1.0, 2.0, 3.0),
        worth_of(2.0, 1.0, 3.0),
        worth_of(0.3, 0.1, 0.0),
        worth_of(-0.2, -0.1, 0.0),  # the loss falls without this edge
        worth_of(0.1, 0.2, 0.0),
    ]
    cell, change = derive_cell(pools, weights, Random(0), worths=worths)
    assert cell.nodes[0] == (Edge(0, Skip()), Edge(1, Conv(3)))
    assert cell.nodes[1] == (Edge(0, Conv(3)), Edge(2, Skip()))
    assert [edge.pruned[0].op for edge in change.edges] == [
        Conv(3), Skip(), Skip(), Conv(3), Conv(3)
    ]  # fmt: skip


def test_blended_strengths_are_in_units_of_their_spread() -> None:
    edges = [worth_of(0.0, 2.0, weighed=(0.5, 0.5)), worth_of(0.0, 2.0, weighed=(0.1, 0.9))]
    (_, better), (_, best) = (edge.strengths for edge in blended(edges))
    assert best > better
    assert blended([worth_of(1.0, weighed=(1.0,))])[0].strengths == (2.0,)


def test_last_kept_and_first_pruned() -> None:
    ops: tuple[Operation, ...] = (Skip(), Conv(3), Pool("max", 3), Zero())
    scores = [0.1, 0.2, 0.3, 0.4]
    assert last_and_first(ops, scores, [Skip()]) == (1, 0)
    assert last_and_first(ops, scores, [Skip(), Conv(3)]) == (2, 1)
    assert last_and_first(ops, scores, []) is None
    # The convolution stays by a rule, in spite of its score.
    assert last_and_first(ops, scores, [Skip(), Pool("max", 3)]) == (3, 2)
    assert last_and_first(ops, scores, [Skip(), Pool("max", 3), Zero()]) is None
    assert last_and_first(ops, scores, [Skip(), Conv(3), Zero()], no_zero=True) == (2, 1)


def test_worth_that_fits_no_candidates_is_refused() -> None:
    with pytest.raises(ValueError, match="for each candidate"):
        EdgeWorth(((1.0,), (2.0,)), (0, 0), (1.0, 2.0))

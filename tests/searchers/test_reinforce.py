"""REINFORCE on a plain policy: its gradient is that of the mean reward, and it learns."""

import math
from itertools import product
from random import Random

from prnas.searchers.base import Evaluated, Proposal
from prnas.searchers.cells import CellSpace
from prnas.searchers.reinforce import Reinforce, softmax
from prnas.space.genotype import Genotype
from prnas.space.operations import Conv, Pool, Skip, Zero
from prnas.space.shape import CellShape
from tests.support.made_scores import SPACES, asked, score_of

# Two edges and three operations: nine cells.
TINY = CellSpace.uniform(
    (Zero(), Skip(), Conv(3)), 1, CellShape(("normal",), inputs=2, reads="all"), "last"
)


def probability(policy: Reinforce, genotype: Genotype) -> float:
    chances = [
        policy.probabilities(("normal", state, edge.input))[
            TINY.choices["normal", state, edge.input].index(edge.op)
        ]
        for state, edge in genotype.normal.edges
    ]
    return math.prod(chances)


def cells() -> list[Genotype]:
    found: dict[Genotype, None] = {}
    generator = Random(0)
    while len(found) < 9:
        found[TINY.draw(generator)] = None
    return list(found)


def spread() -> Reinforce:
    policy = Reinforce(TINY, Random(1))
    for logits, values in zip(
        policy.logits.values(), ([0.3, -0.5, 1.0], [0, 0.7, -1]), strict=True
    ):
        logits[:] = values
    return policy


def test_probabilities_of_all_cells_are_one_together() -> None:
    policy = spread()
    assert math.isclose(sum(probability(policy, cell) for cell in cells()), 1)
    drawn = asked(policy_without_learning(policy), 6000)
    for cell in cells():
        share = sum(one.genotype == cell for one in drawn) / 6000
        assert abs(share - probability(policy, cell)) < 0.03


def policy_without_learning(policy: Reinforce) -> Reinforce:
    policy.lr = 0.0
    return policy


def test_the_mean_gradient_is_that_of_the_mean_reward() -> None:
    """By enumeration, against finite differences of the sum of p(cell) x reward."""
    policy = spread()

    def mean_reward() -> float:
        return sum(probability(policy, cell) * score_of(cell) for cell in cells())

    for key, i in product(policy.logits, range(3)):
        expected = sum(
            probability(policy, cell) * policy.gradients(cell, score_of(cell))[key][i]
            for cell in cells()
        )
        logits, step = policy.logits[key], 1e-5
        logits[i] += step
        above = mean_reward()
        logits[i] -= 2 * step
        below = mean_reward()
        logits[i] += step
        assert math.isclose(-expected, (above - below) / (2 * step), rel_tol=1e-5, abs_tol=1e-9)


def test_a_constant_reward_teaches_nothing() -> None:
    policy = spread()
    before = {key: list(values) for key, values in policy.logits.items()}
    asked(policy, 50, lambda _: 0.7)
    for key, values in policy.logits.items():
        assert all(abs(a - b) < 1e-6 for a, b in zip(values, before[key], strict=True))


def test_the_first_step_of_adam_is_its_rate() -> None:
    policy = spread()
    before = {key: list(values) for key, values in policy.logits.items()}
    policy._sum, policy._weight = 0.5, 1.0  # a baseline before the first
    policy.num_evaluations = 1
    cell = policy.ask()
    policy._learn(Evaluated(cell, 0.9, 1), Proposal(cell))
    for state, edge in cell.normal.edges:
        key = ("normal", state, edge.input)
        chosen = TINY.choices[key].index(edge.op)
        for i, (old, new) in enumerate(zip(before[key], policy.logits[key], strict=True)):
            assert math.isclose(new - old, 0.01 if i == chosen else -0.01, rel_tol=1e-4)


def test_it_learns_what_is_rewarded() -> None:
    for seed in range(5):
        policy = Reinforce(SPACES["nasbench201"], Random(seed), lr=0.1)

        def pools(genotype: Genotype) -> float:
            return sum(isinstance(op, Pool) for op in genotype.normal.operations) / 6

        asked(policy, 400, pools)
        asked_last = asked(policy, 20, pools)
        assert sum(pools(one.genotype) for one in asked_last) / 20 > 0.85


def test_softmax_takes_large_numbers() -> None:
    assert softmax([1000.0, 1000.0]) == [0.5, 0.5]

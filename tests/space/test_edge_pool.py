from collections import Counter
from collections.abc import Sequence
from math import exp, sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.space.change import Added, EdgeChange, Pruned
from prnas.space.edge_pool import Arrival, EdgePool
from prnas.space.morphisms import MORPHISMS, morphs
from prnas.space.operations import Conv, Convolution, Operation, PlainConv, Pool, Skip, Zero
from prnas.space.pools import CellPools
from prnas.space.scores import softmax
from prnas.space.setting import PAPER_SETTINGS, Limits, Setting
from tests.support.strategies import evolved_pools, random_weights, seeds, weighted_pools

WIDE = Limits(1, 7, 2, None, None)
POOL = EdgePool.initial((Pool("max"), Pool("avg"), Skip(), Conv(3)))


def prune(pool: EdgePool, weights: Sequence[float], keep: int, seed: int = 0) -> EdgePool:
    """The end of a cycle that adds nothing."""
    return pool.evolve(weights, keep, 0, WIDE, Random(seed))[0]


def replace(
    pool: EdgePool, weights: Sequence[float], number: int, limits: Limits, generator: Random
) -> tuple[EdgePool, EdgeChange]:
    """The end of a cycle that prunes nothing."""
    return pool.evolve(weights, len(weights), number, limits, generator)


@given(weighted_pools(), st.integers(1, 8), seeds)
def test_pruning_keeps_the_best(
    weighted: tuple[EdgePool, list[float]], keep: int, seed: int
) -> None:
    pool, weights = weighted
    pruned, change = pool.evolve(weights, keep, 0, WIDE, Random(seed))
    of = dict(zip(pool.candidates, weights, strict=True))
    assert len(pruned.candidates) == min(keep, len(pool.candidates))
    assert pruned.candidates == tuple(op for op in pool.candidates if op in pruned.candidates)
    assert {one.op for one in change.pruned} == set(pool.candidates) - set(pruned.candidates)
    convs = [op for op in pool.candidates if isinstance(op, Convolution)]
    if convs:
        best = max(of[op] for op in convs)
        assert any(isinstance(op, Convolution) and of[op] == best for op in pruned.candidates)
    gone = [of[one.op] for one in change.pruned]
    stay = [of[op] for op in pruned.candidates if not isinstance(op, Convolution)]
    assert not gone or not stay or max(gone) <= min(stay)


def test_the_last_conv_stays() -> None:
    weights = [3.0, 2.0, 1.0, -9.0]
    kept, change = POOL.evolve(weights, 2, 0, WIDE, Random(0))
    assert kept.candidates == (Pool("max"), Conv(3))
    assert [one.op for one in change.pruned] == [Pool("avg"), Skip()]
    assert change.pruned[0].probability == pytest.approx(softmax(weights)[1])
    assert prune(POOL, weights, 1).candidates == (Conv(3),)
    plain = EdgePool.initial((PlainConv(1), Skip(), PlainConv(3), Conv(3)))
    assert prune(plain, [0, 9, 2, 1], 2).candidates == (Skip(), PlainConv(3))
    assert prune(plain, [0, 9, 1, 2], 2).candidates == (Skip(), Conv(3))  # one of either kind
    zero = EdgePool.initial((Zero(), Skip(), Conv(3)))
    assert prune(zero, [9, 0, 1], 2).candidates == (Zero(), Conv(3))


def test_ties_are_broken_by_the_generator() -> None:
    pool = EdgePool.initial((Pool("max"), Pool("avg"), Skip(), Zero()))
    kept = Counter(prune(pool, [0.0] * 4, 1, seed).candidates[0] for seed in range(400))
    assert set(kept) == set(pool.candidates)
    assert min(kept.values()) > 70  # 100 expected, with a standard deviation of 9


def exact_by_hand(
    candidates: dict[Operation, float], bounds: Limits, refused: set[Operation]
) -> dict[tuple[Operation, str], float]:
    """The spec's words: draw a parent, then a morphism, and reject a known child."""
    total = sum(map(exp, candidates.values()))
    chances: dict[tuple[Operation, str], float] = {}
    for op, weight in candidates.items():
        legal = [one for one in MORPHISMS.values() if one.legal(op, bounds)]
        for morphism in legal:
            if morphism.apply(op) not in refused:
                chances[op, morphism.name] = exp(weight) / total / len(legal)
    accepted = sum(chances.values())
    return {draw: chance / accepted for draw, chance in chances.items()}


def by_rejection(
    candidates: dict[Operation, float], bounds: Limits, refused: set[Operation], generator: Random
) -> tuple[Operation, str]:
    """The same, literally: try until a child is accepted."""
    ops, powers = list(candidates), [exp(weight) for weight in candidates.values()]
    while True:
        op = generator.choices(ops, powers)[0]
        legal = [one for one in MORPHISMS.values() if one.legal(op, bounds)]
        if legal:
            morphism = generator.choice(legal)
            if morphism.apply(op) not in refused:
                return op, morphism.name


def test_draws_have_exactly_the_right_probabilities() -> None:
    weights: dict[Operation, float] = {
        Skip(): 1.0,
        Conv(3): 0.4,
        Conv(5, 1, (1,)): 0.0,
        Conv(3, 2, (2, 1)): -0.8,
    }
    births = (*map(Arrival, weights), Arrival(Conv(3, 1, (1,))), Arrival(Conv(7, 1, (1,))))
    pool = EdgePool(tuple(weights), births)
    exact = exact_by_hand(weights, WIDE, set(pool.ever_held))
    assert len(exact) > 8
    generator, rejecting, rounds = Random(1), Random(2), 8_000
    drawn: Counter[tuple[Operation, str]] = Counter()
    rejected: Counter[tuple[Operation, str]] = Counter()
    for _ in range(rounds):
        _, change = replace(pool, list(weights.values()), 1, WIDE, generator)
        (one,) = change.added
        drawn[one.parent, one.morphism] += 1
        assert one.probability == pytest.approx(exact[one.parent, one.morphism], rel=1e-12)
        assert not one.returned
        rejected[by_rejection(weights, WIDE, set(pool.ever_held), rejecting)] += 1
    assert set(drawn) == set(exact)
    for draw, chance in exact.items():
        spread = sqrt(chance * (1 - chance) * rounds)
        assert abs(drawn[draw] - chance * rounds) < 4.5 * spread
        assert abs(rejected[draw] - chance * rounds) < 4.5 * spread


def test_an_old_child_returns_only_when_no_new_one_is_left() -> None:
    bounds = Limits(3, 5, 1, 0)  # conv 3x3 and conv 5x5: nothing else
    pool = EdgePool((Conv(3), Skip()), (Arrival(Conv(3)), Arrival(Conv(5)), Arrival(Skip())))
    after, change = replace(pool, [0, 0], 2, bounds, Random(0))
    (one,) = change.added  # the second draw finds nothing, and the pool stays smaller
    assert (one.op, one.parent, one.morphism, one.returned) == (
        Conv(5),
        Conv(3),
        "grow kernel",
        True,
    )
    assert one.probability == 1
    assert one.parent_probability == 0.5
    assert after.candidates == (Conv(3), Skip(), Conv(5))
    only_skip = EdgePool.initial((Skip(),))
    assert replace(only_skip, [0], 3, bounds, Random(0)) == (only_skip, EdgeChange())


def test_even_the_least_likely_parent_can_be_drawn() -> None:
    pool = EdgePool.initial((Conv(3), Skip()))
    _, change = replace(pool, [-5000.0, 5000.0], 1, WIDE, Random(0))
    assert change.added[0].parent == Conv(3)


@given(evolved_pools(), st.integers(1, 6), st.integers(0, 4), seeds)
def test_evolution_keeps_its_promises(
    evolved: tuple[Setting, CellPools], keep: int, number: int, seed: int
) -> None:
    setting, cell = evolved
    weights = random_weights(cell, Random(seed))
    after, change = cell.evolve(weights, keep, number, setting.limits, Random(seed))
    again = cell.evolve(weights, keep, number, setting.limits, Random(seed))
    assert (after, change) == again  # the same seed, the same evolution
    assert cell.apply(change) == after  # replaying the record reproduces the pools
    for old, new, one in zip(cell.edges, after.edges, change.edges, strict=True):
        assert len(set(new.candidates)) == len(new.candidates)
        assert len(new.candidates) <= min(keep, len(old.candidates)) + number
        assert any(isinstance(op, Conv) for op in new.candidates)
        assert all(setting.limits.allows(op) for op in new.candidates)
        assert old.ever_held <= new.ever_held
        for added in one.added:
            assert added.returned == (added.op in old.ever_held)
            assert MORPHISMS[added.morphism].apply(added.parent) == added.op
            assert Arrival(added.op, added.parent, added.morphism) in new.births[len(old.births) :]
            assert 0 < added.probability <= 1 + 1e-12
        if len(one.added) < number:  # then truly nothing was left to add
            survivors = set(old.candidates) - {gone.op for gone in one.pruned}
            possible = {child for op in survivors for _, child in morphs(op, setting.limits)}
            assert possible <= set(new.candidates)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: prune(POOL, [0, 1], 2), "4 candidates need 4 architecture weights"),
        (lambda: prune(POOL, [0, 1, 2, float("nan")], 2), "must be finite"),
        (lambda: prune(POOL, [0, 1, 2, 3], 0), "at least one candidate"),
        (lambda: EdgePool((Skip(), Skip()), (Arrival(Skip()),)), "no candidate twice"),
        (lambda: EdgePool((), ()), "at least one candidate"),
        (lambda: EdgePool((Skip(),), ()), "where each candidate came from"),
        (lambda: POOL.apply(EdgeChange((Pruned(Conv(9), 0.1),))), "does not hold"),
        (
            lambda: POOL.apply(EdgeChange((), (Added(Conv(7), Conv(5), "grow kernel", 1, 1),))),
            "parent did not stay",
        ),
        (
            lambda: POOL.apply(EdgeChange((), (Added(Conv(9), Conv(3), "grow kernel", 1, 1),))),
            "is no child of",
        ),
        (
            lambda: POOL.apply(EdgeChange((), (Added(Conv(5), Conv(3), "bogus", 1, 1),))),
            "is no child of",
        ),
    ],
)
def test_what_cannot_be(call: object, said: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=r"pool|candidate|weights|change|child") as e:
        call()
    assert said in str(e.value)


def test_every_setting_of_the_paper_starts_with_four() -> None:
    for setting in PAPER_SETTINGS:
        assert setting.initial_pool == POOL.candidates


def test_without_protection_the_best_stay_whatever_they_are() -> None:
    weights = [3.0, 2.0, 1.0, -9.0]
    kept, _ = POOL.evolve(weights, 2, 0, WIDE, Random(0), protect_conv=False)
    assert kept.candidates == (Pool("max"), Pool("avg"))
    with_zero = EdgePool.initial((Zero(), Skip(), Conv(3)))
    alone, _ = with_zero.evolve([3.0, 2.0, 1.0], 1, 0, WIDE, Random(0), protect_conv=False)
    assert alone.candidates == (Skip(),)  # nothing but 'zero' would leave nothing to derive

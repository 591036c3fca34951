"""Paths are drawn fairly, and again the same."""

from collections import Counter
from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.space.paths import fair_group, path_groups, path_number
from prnas.space.pools import CellPools, Pools
from prnas.space.setting import SETTINGS
from tests.support.supernets import random_pools


def pools_of(seed: int) -> Pools:
    return random_pools(SETTINGS["unrestricted"], 2, Random(seed))


@given(st.integers(0, 50), st.integers(0, 1000))
def test_a_group_has_every_candidate_equally_often_or_once_more(seed: int, draw: int) -> None:
    pools = pools_of(seed)
    group = fair_group(pools, Random(draw))
    sizes = {role: [len(e.candidates) for e in pools.cell(role).edges] for role in pools.roles}
    assert len(group) == max(map(max, sizes.values()))
    for role in pools.roles:
        for edge, size in enumerate(sizes[role]):
            counts = Counter(path[role][edge] for path in group)
            assert set(counts) == set(range(size))
            assert max(counts.values()) - min(counts.values()) <= 1


def test_a_number_names_a_path_of_the_endless_row() -> None:
    pools = pools_of(3)
    row = [path for group in islice(path_groups(pools, 7, "train/0"), 4) for path in group]
    assert row == [path_number(pools, 7, "train/0", number) for number in range(len(row))]
    assert row != [path_number(pools, 8, "train/0", number) for number in range(len(row))]
    assert row != [path_number(pools, 7, "train/1", number) for number in range(len(row))]


def test_pairs_of_candidates_on_two_edges_meet_equally_often() -> None:
    """Main effects need designs without a tie between edges: all pairs come, as chance has it."""
    initial = CellPools.initial(2, SETTINGS["darts-like"].initial_pool)
    pools = Pools(initial, initial)
    pairs: Counter[tuple[int, int]] = Counter()
    for group in islice(path_groups(pools, 0, "judge"), 400):
        pairs.update((path["normal"][0], path["reduction"][1]) for path in group)
    assert len(pairs) == 16
    expected = 400 * 4 / 16
    chi_squared = sum((count - expected) ** 2 / expected for count in pairs.values())
    assert chi_squared == pytest.approx(0, abs=30)  # 9 degrees of freedom: beyond 28 once in 1,000

import json
from random import Random

import pytest
from hypothesis import given

from prnas.io.errors import FormatError
from prnas.space.change import Change
from prnas.space.derivation import derive
from prnas.space.genotype import ROLES, Genotype, Role
from prnas.space.operations import Conv
from prnas.space.pools import CellPools, Pools, edge_positions
from prnas.space.schedule import Schedule, paper_schedule
from prnas.space.setting import INITIAL_POOL, PAPER_SETTINGS, SETTINGS, Setting
from tests.support.strategies import evolved_pools, random_weights


def test_four_nodes_have_fourteen_edges() -> None:
    assert len(edge_positions(4)) == 14
    assert edge_positions(2) == [(2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]
    assert [len(edge_positions(nodes)) for nodes in (1, 5, 8)] == [2, 20, 44]
    with pytest.raises(ValueError, match="4 nodes have 14 edges, got 1 pools"):
        CellPools(4, CellPools.initial(4, INITIAL_POOL).edges[:1])


def test_weights_must_fit_the_edges() -> None:
    cell = CellPools.initial(1, INITIAL_POOL)
    with pytest.raises(ValueError, match="2 edges need architecture weights, got them for 1"):
        cell.evolve([[0.0] * 4], 2, 0, SETTINGS["darts-like"].limits, Random(0))


def evolve_fully(setting: Setting, schedule: Schedule, generator: Random) -> Genotype:
    """A whole search but for the training: random architecture weights in every cycle."""
    cells = {role: CellPools.initial(4, setting.initial_pool) for role in ROLES}
    for cycle in schedule.cycles[:-1]:
        for role in ROLES:
            weights = random_weights(cells[role], generator)
            cells[role], _ = cells[role].evolve(
                weights, cycle.survivors, cycle.morphisms, setting.limits, generator
            )
            for pool in cells[role].edges:
                assert len(pool.candidates) <= cycle.candidates
                assert any(isinstance(op, Conv) for op in pool.candidates)
    pools = Pools(cells["normal"], cells["reduction"])
    alphas: dict[Role, list[list[float]]] = {
        role: random_weights(cells[role], generator) for role in ROLES
    }
    genotype, change = derive(pools, alphas, generator)
    final = pools.apply(change)
    assert all(len(pool.candidates) == 1 for role in ROLES for pool in final.cell(role).edges)
    return genotype


@pytest.mark.parametrize("number", [30, pytest.param(1_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("setting", PAPER_SETTINGS, ids=lambda setting: setting.name)
def test_many_full_evolutions(setting: Setting, number: int) -> None:
    generator, schedule = Random(7), paper_schedule()
    found = [evolve_fully(setting, schedule, generator) for _ in range(number)]
    assert len({genotype.dumps() for genotype in found}) == number
    repeated = Random(7)
    assert [evolve_fully(setting, schedule, repeated) for _ in range(3)] == found[:3]


def test_both_cells_replay_and_go_through_json() -> None:
    setting, generator = SETTINGS["unrestricted"], Random(3)
    pools = Pools.initial(3, setting.initial_pool)
    for _ in range(3):
        normal, first = pools.normal.evolve(
            random_weights(pools.normal, generator), 3, 3, setting.limits, generator
        )
        reduction, second = pools.cell("reduction").evolve(
            random_weights(pools.cell("reduction"), generator), 3, 3, setting.limits, generator
        )
        change = Change(first, second)
        assert pools.apply(change) == Pools(normal, reduction)
        assert Change.from_json(json.loads(json.dumps(change.to_json()))) == change
        pools = Pools(normal, reduction)
    assert Pools.from_json(pools.to_json()) == pools


def test_pools_without_births_are_refused() -> None:
    data = Pools.initial(1, INITIAL_POOL).to_json()
    del data["normal"]["edges"][1]["births"]
    with pytest.raises(FormatError, match=r"normal\.edges\[1\]\.births: is missing"):
        Pools.from_json(data)


@given(evolved_pools())
def test_any_pools_go_both_ways_through_json(evolved: tuple[Setting, CellPools]) -> None:
    pools = Pools(evolved[1], evolved[1])
    assert Pools.from_json(pools.to_json()) == pools

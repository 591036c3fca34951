"""Perturbation-based selection (DARTS-PT): edges become discrete one after the other."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from prnas.config.choices import Execution
from prnas.config.search import SearchConfig
from prnas.nets.paths import path_logits
from prnas.nets.supernet import build_supernet
from prnas.runs.run import Stopped
from prnas.searching.api import resume, start
from prnas.searching.sequential import due_after
from prnas.space.operations import Conv, Pool, Skip
from prnas.space.pools import Pools
from prnas.space.shape import Role
from prnas.space.worth import Elimination
from tests.support.settings import small_config
from tests.support.supernets import randomized
from tests.support.watching import Watch, assert_same_run, folder_of


def test_the_published_course() -> None:
    """After 50 epochs the first of 14 edges, then one every five epochs."""
    assert [due_after(place, 14, 120, 70) for place in range(14)] == list(range(50, 120, 5))


@given(st.integers(1, 30), st.integers(1, 60), st.integers(1, 100))
def test_every_edge_is_decided_within_the_cycle_in_order(
    number: int, epochs: int, over: int
) -> None:
    due = [due_after(place, number, epochs, over) for place in range(number)]
    assert due == sorted(due)
    assert due[0] >= 1
    assert due[-1] <= max(epochs - 1, 1)


@pytest.mark.parametrize("execution", ["fused", "plain"])
def test_where_all_edges_are_decided_it_is_the_discrete_network(execution: Execution) -> None:
    pools = Pools.initial(2, (Conv(3), Pool("max", 3), Skip()))
    built = build_supernet(pools, 4, 3, 5, execution=execution)
    supernet = randomized(built.double(), 0)
    path: dict[Role, tuple[int, ...]] = {"normal": (0, 1, 2, 0, 0), "reduction": (2, 0, 1, 0, 2)}
    for role, indices in path.items():
        for edge, index in enumerate(indices):
            supernet.decided[role, edge] = index
    images = torch.randn(2, 3, 8, 8, dtype=torch.float64)
    logits = supernet(images)
    assert torch.equal(logits, path_logits(supernet, images, path))
    logits.square().sum().backward()
    for cell in supernet.search_cells:
        for edge, chosen in enumerate(path[cell.plan.role]):
            for index, module in enumerate(cell.operations[edge].children()):
                assert all((w.grad is not None) == (index == chosen) for w in module.parameters())


def test_one_decided_edge_leaves_the_others_mixed() -> None:
    pools = Pools.initial(1, (Conv(3), Skip()))
    supernet = randomized(build_supernet(pools, 4, 3, 5), 0)
    before = supernet.mixing()
    supernet.decided["normal", 1] = 0
    after = supernet.mixing()
    assert torch.equal(after["normal"][0], before["normal"][0])
    assert after["normal"][1].tolist() == [1.0, 0.0]
    supernet.reset_architecture()
    assert not supernet.decided


def test_an_elimination_that_is_decided_measures_the_one_that_stays() -> None:
    """Even if the loss is lower without it."""
    one = Elimination((Conv(3), Skip(), Pool("max", 3)), 1, decided=1)
    gone, everything = frozenset({0, 2}), frozenset({0, 1, 2})
    assert one.ask() == [gone, everything]
    one.tell({gone: [1.0, 2.0], everything: [0.5, 1.5]})
    assert one.ask() == []
    worth = one.result()
    assert worth.order[0] == 1
    assert worth.strengths == (0.0, -0.5, 0.0)


def config(images: Path, **changes: Any) -> SearchConfig:
    cycle = {"epochs": 4, "grace_epochs": 0, "morphisms": 0, "candidates": 1}
    return small_config(
        images,
        schedule={"cycles": [cycle]},
        architecture={"step": "none", "scoring": "removal", "sequential": 3},
        network={"nodes": 2},
        **changes,
    )


def test_a_search_decides_in_turn_and_goes_on_bit_for_bit(images: Path, tmp_path: Path) -> None:
    watch = Watch()
    settings = config(images)
    result = start(settings, runs=tmp_path, name="whole", callbacks=[watch])
    kept = [text for text in watch.messages if " keeps '" in text]
    assert len(kept) == 2 * 5  # both cells, five edges
    genotype = result.genotype
    for role in genotype.roles:
        for state, edge in genotype.cell(role).edges:
            said = f"edge {edge.input}→{state} of the {role} cell keeps '{edge.op.label}'"
            assert any(said in text for text in kept)
    last = len(watch.steps)
    stop = Watch(last - 1, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped) as caught:
        start(settings, runs=tmp_path, name="cut", callbacks=[stop])
    folder = folder_of(caught.value)
    resume(folder)
    assert_same_run(folder, folder_of(result))

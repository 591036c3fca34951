"""The genotype that would be derived now: what records say of it, and when there is a warning."""

import os
import signal
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prnas
from prnas.config.search import SearchConfig
from prnas.runs.run import Stopped
from prnas.searching.api import resume, start
from prnas.searching.derived_now import derived_now, derived_record, held_back, warning
from prnas.space import zoo
from prnas.space.analysis.distance import edit_distance
from prnas.space.derivation import derive
from prnas.space.genotype import ROLES, Cell, Edge, Genotype, Role
from prnas.space.operations import Conv, Skip
from prnas.space.pools import CellWeights, Pools
from tests.support.settings import small_config
from tests.support.strategies import random_weights
from tests.support.watching import Watch, folder_of

CONFIG = SearchConfig()
POOLS = Pools.initial(4, CONFIG.space.initial_pool)


def with_skips(role: Role, number: int) -> Genotype:
    """A genotype whose `role` has that many skips among its eight operations, the other none."""

    def cell(skips: int) -> Cell:
        nodes = zoo.get("darts-v1").normal.nodes
        edges = [edge for node in nodes for edge in node]
        made = [
            Edge(edge.input, Skip() if place < skips else Conv(3))
            for place, edge in enumerate(edges)
        ]
        pairs = tuple(zip(made[::2], made[1::2], strict=True))
        return replace(zoo.get("darts-v1").normal, nodes=pairs)

    normal, reduction = (cell(number if one == role else 0) for one in ROLES)
    return Genotype(normal, reduction)


@given(st.integers(0, 50))
def test_it_is_what_a_derivation_would_choose(seed: int) -> None:
    generator = Random(seed)
    weights: dict[Role, CellWeights] = {
        role: random_weights(POOLS.cell(role), generator) for role in ROLES
    }
    found = derived_now(CONFIG, POOLS, weights)
    assert found == derive(POOLS, weights, generator)[0]  # no ties: any generator
    bounded = CONFIG.override(["derivation.max_skips_normal=0"])
    now = derived_now(bounded, POOLS, weights)
    assert now is not None
    assert derived_record(now, found).skips["normal"] == 0


def test_ties_are_broken_always_in_the_same_way() -> None:
    weights: dict[Role, list[list[float]]] = {
        role: [[0.0] * 4 for _ in POOLS.cell(role).edges] for role in ROLES
    }
    assert derived_now(CONFIG, POOLS, weights) is None  # all are equal: nothing to derive
    weights["reduction"][3][1] = 0.25
    assert derived_now(CONFIG, POOLS, weights) == derived_now(CONFIG, POOLS, weights) is not None
    weights["reduction"][3][1] = float("nan")
    assert derived_now(CONFIG, POOLS, weights) is None


def test_what_is_recorded() -> None:
    one, other = zoo.get("darts-v1"), with_skips("normal", 2)
    first = derived_record(one, None)
    assert Genotype.from_json(first.genotype) == one
    assert first.edits is None
    assert first.skips == {"normal": 3 / 8, "reduction": 3 / 8}
    second = derived_record(other, one)
    assert second.edits == edit_distance(one, other) > 0
    assert second.skips == {"normal": 2 / 8, "reduction": 0}
    assert derived_record(other, other).edits == 0


@pytest.mark.parametrize("role", ROLES)
def test_a_warning_when_skips_take_over(role: Role) -> None:
    assert warning(with_skips(role, 4), None, CONFIG) is None  # half of them
    text = warning(with_skips(role, 5), with_skips(role, 4), CONFIG)
    assert text is not None
    assert f"5 of the 8 operations of the {role} cell" in text
    assert f"derivation.max_skips_{role}" in text
    assert "skip_dropout" in text
    assert warning(with_skips(role, 5), None, CONFIG) == text
    assert warning(with_skips(role, 6), with_skips(role, 5), CONFIG) is None  # was said already
    assert warning(with_skips(role, 4), with_skips(role, 5), CONFIG) is None


@pytest.mark.parametrize("role", ROLES)
def test_a_bound_that_holds_skips_back_is_told(role: Role) -> None:
    """Where there is a bound, a cell never has too many: what counts is what it would have."""
    bounded = CONFIG.override([f"derivation.max_skips_{role}=2"])
    text = held_back(with_skips(role, 5), bounded)
    assert text is not None
    assert f"without it they would be 5 of the 8 operations of the {role} cell" in text
    assert "skip_dropout" in text
    assert held_back(with_skips(role, 4), bounded) is None
    assert held_back(with_skips(role, 8), CONFIG) is None
    other: Role = "reduction" if role == "normal" else "normal"
    assert held_back(with_skips(other, 8), bounded) is None


@pytest.mark.parametrize(
    ("settings", "named", "others"),
    [
        ([], ["a smaller architecture.lr", "scoring=removal", "skip_dropout"], ["travel"]),
        (["lr=auto"], ["a smaller architecture.travel"], ["architecture.lr"]),
        (["scoring=blend", "lr=auto"], ["architecture.travel", "grace_epochs"], ["removal"]),
        (
            ["step=sampled", "scoring=paths"],
            ["more epochs in the first cycles", "more images"],
            ["travel", "architecture.lr", "skip_dropout", "removal"],
        ),
        (["step=multinomial", "relaxation=multinomial"], ["architecture.transfer"], ["travel"]),
    ],
)
def test_the_warning_names_only_what_has_an_effect(
    settings: list[str], named: list[str], others: list[str]
) -> None:
    config = CONFIG.override([f"architecture.{one}" for one in settings])
    text = warning(with_skips("normal", 6), None, config)
    assert text is not None
    assert "derivation.max_skips_normal" in text
    assert all(words in text for words in named)
    assert not any(words in text for words in others)


def test_a_search_tells_it_after_every_epoch_and_finds_what_it_told_last(images: Path) -> None:
    watch = Watch()
    config = small_config(images, network={"nodes": 2})
    found = prnas.search(config, callbacks=[watch])
    told = [one.derived for one in found.epochs]
    assert [one is None for one in told] == [one.grace for one in found.epochs]
    derived = [one for one in told if one is not None]
    genotypes = [Genotype.from_json(one.genotype) for one in derived]
    assert genotypes[-1] == found.genotype
    assert [one.edits for one in derived] == [
        None,
        *(edit_distance(genotypes[i], genotypes[i + 1]) for i in range(len(genotypes) - 1)),
    ]
    warnings = [text for text in watch.messages if "skips take over" in text]
    pairs = zip(genotypes, [None, *genotypes], strict=False)
    assert len(warnings) == sum(warning(*pair, config) is not None for pair in pairs)
    assert all(one.derived is None for one in found.cycles)  # nothing else decides


def test_skips_that_take_over_are_told(images: Path) -> None:
    """A pool of almost nothing else."""
    watch = Watch()
    config = small_config(
        images,
        space={"name": "few", "initial_pool": ["skip"], "limits": {}},
        schedule={"cycles": [{"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1}]},
    )
    prnas.search(config, callbacks=[watch])
    assert watch.messages == []  # a single candidate is no choice
    config = config.override(["space.initial_pool=[zero, skip]"])
    prnas.search(config, callbacks=[watch])
    (text,) = watch.messages
    assert text.startswith("cycle 1, epoch 1: skips take over: they would be 2 of the 2 operations")


MEASURED = {"step": "none", "scoring": "removal"}


def test_where_measurements_decide_it_is_told_at_the_end_of_cycles(
    images: Path, tmp_path: Path
) -> None:
    """Also by a search that was stopped in between and went on."""
    config = small_config(images, architecture=MEASURED, network={"nodes": 2})
    found = prnas.search(config)
    assert all(one.derived is None for one in found.epochs)  # all architecture weights are equal
    told = [one.derived for one in found.cycles if one.derived is not None]
    assert len(told) == len(found.cycles) == 3
    genotypes = [Genotype.from_json(one.genotype) for one in told]
    assert genotypes[-1] == found.genotype
    edits = [edit_distance(one, other) for one, other in pairwise(genotypes)]
    assert [one.edits for one in told] == [None, *edits]
    stop = Watch(7, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped) as caught:
        start(config, runs=tmp_path, callbacks=[stop])
    again = resume(folder_of(caught.value))
    assert [one.derived for one in again.cycles] == [one.derived for one in found.cycles]


def test_skips_that_measurements_prefer_are_told_once(images: Path) -> None:
    """A pool of almost nothing else, in two cycles."""
    watch = Watch()
    cycle = {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 2}
    config = small_config(
        images,
        architecture=MEASURED,
        space={"name": "few", "initial_pool": ["zero", "skip"], "limits": {}},
        schedule={"cycles": [cycle, {**cycle, "candidates": 1}]},
    )
    prnas.search(config, callbacks=[watch])
    (text,) = watch.messages
    assert text.startswith("cycle 1: skips take over: they would be 2 of the 2 operations")
    assert "more epochs in the first cycles" in text

"""Paths: one candidate on every edge of every cell, as a search draws them to train and to judge.

They are drawn in fair groups, of as many paths as the largest pool has candidates: within a group,
every candidate of an edge is in as many paths as any other, or in one more where the numbers do not
divide (strict fairness, as Chu et al. 2021 train a supernet with). What is drawn follows from the
seed and a number alone, so that a resumed search repeats it, and all processes agree.
"""

from collections.abc import Iterator
from random import Random

from prnas.space.edge_pool import EdgePool
from prnas.space.pools import Pools
from prnas.space.shape import Role

Path = dict[Role, tuple[int, ...]]  # for each edge of each cell, the index of a candidate


def fair_group(pools: Pools, generator: Random) -> list[Path]:
    """A group of paths in which all candidates of an edge are drawn equally often."""
    edges: list[tuple[Role, EdgePool]] = [
        (role, edge) for role in pools.roles for edge in pools.cell(role).edges
    ]
    size = max(len(edge.candidates) for _, edge in edges)
    columns: list[tuple[Role, list[int]]] = []
    for role, edge in edges:
        drawn: list[int] = []
        while len(drawn) < size:
            indices = list(range(len(edge.candidates)))
            generator.shuffle(indices)
            drawn += indices
        columns.append((role, drawn[:size]))
    return [
        {role: tuple(drawn[k] for own, drawn in columns if own == role) for role in pools.roles}
        for k in range(size)
    ]


def path_groups(pools: Pools, seed: int, purpose: str, first: int = 0) -> Iterator[list[Path]]:
    """Endless groups; those from number `first` on."""
    number = first
    while True:
        yield fair_group(pools, Random(f"{seed}/{purpose}/{number}"))
        number += 1


def path_number(pools: Pools, seed: int, purpose: str, number: int) -> Path:
    """The path of that number, counted through all groups."""
    size = max(len(edge.candidates) for role in pools.roles for edge in pools.cell(role).edges)
    return next(path_groups(pools, seed, purpose, number // size))[number % size]

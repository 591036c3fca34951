"""Searchers of every kind, and scores that follow from a cell alone."""

import zlib
from collections.abc import Callable
from random import Random
from typing import Any

from prnas.searchers.base import Searcher
from prnas.searchers.cells import CellSpace
from prnas.searchers.evolution import Evolution
from prnas.searchers.halving import SuccessiveHalving
from prnas.searchers.local_search import LocalSearch
from prnas.searchers.random_search import RandomSearch
from prnas.searchers.reinforce import Reinforce
from prnas.space.genotype import Genotype
from prnas.space.operations import Conv, Operation, PlainConv, Pool, Skip, Zero
from prnas.space.shape import NASBENCH201

POOL: tuple[Operation, ...] = (Pool("max", 3), Skip(), Conv(3), Zero())
SPACE201 = CellSpace.uniform(
    (Zero(), Skip(), PlainConv(1), PlainConv(3), Pool("avg", 3)), 3, NASBENCH201, "last"
)
SPACES = {"darts": CellSpace.uniform(POOL, 3), "nasbench201": SPACE201}
KINDS: dict[str, Callable[[CellSpace, Random], Searcher]] = {
    "random": RandomSearch,
    "evolution": lambda space, generator: Evolution(space, generator, 5, 2),
    "evolution by morphisms": lambda space, generator: Evolution(
        space, generator, 5, 2, "morphisms", "worst"
    ),
    "local search": LocalSearch,
    "local search to the first": lambda space, generator: LocalSearch(space, generator, "first"),
    "reinforce": Reinforce,
    "halving": lambda space, generator: SuccessiveHalving(space, generator, 2, 3),
}


def score_of(genotype: Genotype) -> float:
    """As good as random, but always the same."""
    return zlib.crc32(genotype.dumps().encode()) / 2**32


def asked(searcher: Searcher, number: int, score: Callable[[Any], float] = score_of) -> list[Any]:
    """The next cells that a searcher asks for, each with its parent and share."""
    found: list[Any] = []
    for _ in range(number):
        genotype = searcher.ask()
        found.append(searcher.proposal)
        searcher.tell(genotype, score(genotype))
    return found

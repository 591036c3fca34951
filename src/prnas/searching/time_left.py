"""A model of the relative cost of a search's epochs."""

from collections.abc import Sequence
from random import Random
from statistics import fmean

from prnas.config.search import SearchConfig
from prnas.searching.steps import step_costs
from prnas.space.edge_pool import EdgePool
from prnas.space.operations import Convolution
from prnas.space.pools import edge_positions

# In units of one separable 3x3 convolution, as the `cost` of an operation:
CELL_COST = 2.0  # the two 1x1 convolutions that every cell of DARTS' network begins with
# In units of an ordinary weight step on as many images, as measured on a CPU (the step itself says
# what its parts cost):
VALIDATION = 0.15  # forward only, in large batches
EDGES = 40  # how many edges are tried out; more would change the mean by a percent or two
# By how many standard deviations searches rank operations without weights above convolutions: these
# have to be trained first. (Chosen by eye: five searches by `quick` lay between 1 and 1.5, one by
# paths below 0.5, seven in NAS-Bench-201 on CIFAR-10 around 0.)
PREFERENCE = 1.0
_SMALL = 1e-3  # Architecture weights so small that parents are drawn evenly.


def work_of_epochs(
    config: SearchConfig, first: int = 0, pools: Sequence[EdgePool] | None = None
) -> list[list[float]]:
    """The relative cost of each epoch of the cycles from `first` on, which begins with `pools`.

    The unit is the same for the whole search. A supernet costs as much as its candidates, on all
    edges of all cells; small ones are bound by memory, so that channels count linearly. An epoch
    trains the weights on their half of the images, after the grace epochs architecture weights as
    often, and validates on the other half.
    """
    costs = pool_costs(config, first, pools)
    cycles = range(first, len(config.schedule.cycles))
    return [_work(config, number, cost) for number, cost in zip(cycles, costs, strict=True)]


def _work(config: SearchConfig, number: int, pool: float) -> list[float]:
    architecture_cost, weights_cost = step_costs(config.architecture)
    cycle = config.schedule.cycles[number]
    edges = len(edge_positions(config.network.nodes, config.network.shape))
    cells = cycle.cells or config.network.cells
    channels = cycle.channels or config.network.channels
    inputs = CELL_COST if config.network.shape.network == "darts" else 0.0
    groups = cycle.partial_channels or config.network.partial_channels
    supernet = cells * channels * (edges * pool / groups + inputs)
    share = config.data.architecture_share
    work: list[float] = []
    for epoch in range(cycle.epochs):
        images = weights_cost * (1 - share)
        if epoch >= cycle.grace_epochs:
            images += architecture_cost * (1 - share)
        if config.validation.includes(epoch, cycle.epochs):
            images += VALIDATION * share
        work.append(supernet * images)
    return work


def pool_costs(
    config: SearchConfig, first: int = 0, pools: Sequence[EdgePool] | None = None
) -> list[float]:
    """The expected cost of an edge's pool in each cycle from `first` on.

    The first is that of `pools` (or of the initial ones). From there on, pools are pruned and
    replaced as the search will do it, with made-up architecture weights.
    """
    generator = Random(0)
    space, cycles = config.space, config.schedule.cycles
    edges = list(pools or [EdgePool.initial(space.initial_pool)])
    edges *= -(-EDGES // len(edges))
    costs = [_cost(edges)]
    for cycle in cycles[first:-1]:
        edges = [
            edge.evolve(
                [_weight(op, generator) for op in edge.candidates],
                min(cycle.survivors, len(edge.candidates)),  # It may hold fewer than it should.
                cycle.morphisms,
                space.limits,
                generator,
                protect_conv=cycle.protect_conv,
            )[0]
            for edge in edges
        ]
        costs.append(_cost(edges))
    return costs


def _cost(edges: Sequence[EdgePool]) -> float:
    return fmean(sum(op.cost for op in edge.candidates) for edge in edges)


def _weight(op: object, generator: Random) -> float:
    preference = 0.0 if isinstance(op, Convolution) else PREFERENCE
    return _SMALL * (preference + generator.gauss(0.0, 1.0))

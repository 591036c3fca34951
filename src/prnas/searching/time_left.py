"""A model of the relative cost of a search's epochs."""

from prnas.config.search import SearchConfig
from prnas.searching.steps import step_costs
from prnas.space.morphisms import has_morphisms
from prnas.space.pools import edge_positions

# In units of one separable 3x3 convolution, as the `cost` of an operation:
KERNEL_COST = 1.4  # a convolution of the largest kernel
CELL_COST = 2.0  # the two 1x1 convolutions that every cell of DARTS' network begins with
# In units of an ordinary weight step on as many images, as measured on a CPU (the step itself says
# what its parts cost):
VALIDATION = 0.15  # forward only, in large batches
CHILD_GROWTH = 1.35  # what a child costs more than its parents: deeper, or a larger kernel


def epoch_work(config: SearchConfig, number: int) -> list[float]:
    """The relative cost of each epoch of cycle `number`; the unit is the same for the whole search.

    A supernet costs as much as its candidates, on all edges of all cells; small ones are bound by
    memory, so that channels count linearly. An epoch trains the weights on their half of the
    images, after the grace epochs architecture weights as often, and validates on the other half.
    """
    architecture_cost, weights_cost = step_costs(config.architecture)
    cycle = config.schedule.cycles[number]
    edges = len(edge_positions(config.network.nodes, config.network.shape))
    cells = cycle.cells or config.network.cells
    channels = cycle.channels or config.network.channels
    inputs = CELL_COST if config.network.shape.network == "darts" else 0.0
    supernet = cells * channels * (edges * pool_costs(config)[number] + inputs)
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


def pool_costs(config: SearchConfig) -> list[float]:
    """The expected cost of an edge's pool in each cycle.

    The first is known. From then on, survivors cost what the pool's mean was, and children a little
    more than the operations that can be morphed did before, but never more than the largest
    convolution within the space's limits.
    """
    pool = config.space.initial_pool
    parents = [op.cost for op in pool if has_morphisms(op)]
    child = sum(parents) / len(parents) if parents else 0.0
    dearest = max(KERNEL_COST * (config.space.limits.depth_bound + 1.0), child)
    costs = [sum(op.cost for op in pool)]
    size = len(pool)
    for before in config.schedule.cycles[:-1]:
        child = min(child * CHILD_GROWTH, dearest)
        survivors = min(before.survivors, size)  # a pool may have fewer than it should
        morphisms = before.morphisms if parents else 0
        costs.append(costs[-1] / size * survivors + morphisms * child)
        size = survivors + morphisms
    return costs

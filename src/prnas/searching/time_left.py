"""How long a search will still take: a model of its epochs' relative cost, and measured times."""

from collections.abc import Sequence

from prnas.config.search import SearchConfig
from prnas.space.operations import Conv, Conv1x7x1, Operation, Pool
from prnas.space.pools import edge_positions

# Costs in units of one separable 3x3 convolution, forward and backward, as measured on a CPU.
POOL_COST = 0.15  # pools are computed once for all edges that leave a state
SKIP_COST = 0.05
KERNEL_COST = 1.4  # of the largest kernels
CELL_COST = 2.0  # the two 1x1 convolutions that every cell begins with
# In units of a weight step on as many images, as measured on a CPU:
ARCHITECTURE_STEP = 0.5  # forward and backward, but no gradients of weights
VALIDATION = 0.15  # forward only, in large batches
CHILD_GROWTH = 1.35  # what a child costs more than its parents: deeper, or a larger kernel
RECENT = 0.75  # an epoch counts this much of the one after it


def seconds_left(work_done: Sequence[tuple[float, float]], work_left: float) -> float | None:
    """Seconds for `work_left`, from (work, seconds) of what is done, the latest last.

    The later an epoch, the more it counts. `None`: nothing is done yet that could tell.
    """
    if work_left <= 0:
        return 0.0
    work = seconds = 0.0
    for done, took in work_done:
        work = RECENT * work + max(done, 0.0)
        seconds = RECENT * seconds + max(took, 0.0)
    return work_left * seconds / work if work > 0 else None


def epoch_work(config: SearchConfig, cycle: int) -> list[float]:
    """The relative cost of each epoch of a cycle; the unit is the same for the whole search.

    A supernet costs as much as its candidates, on all edges of all cells; small ones are bound by
    memory, so that channels count linearly. An epoch trains the weights on their half of the
    images, after the grace epochs architecture weights as often, and validates on the other half.
    """
    one = config.schedule.cycles[cycle]
    edges = len(edge_positions(config.network.nodes))
    cells = one.cells or config.network.cells
    channels = one.channels or config.network.channels
    supernet = cells * channels * (edges * pool_costs(config)[cycle] + CELL_COST)
    share = config.data.architecture_share
    work: list[float] = []
    for epoch in range(one.epochs):
        images = 1 - share
        if epoch >= one.grace_epochs:
            images += ARCHITECTURE_STEP * (1 - share)
        if config.validation.includes(epoch, one.epochs):
            images += VALIDATION * share
        work.append(supernet * images)
    return work


def pool_costs(config: SearchConfig) -> list[float]:
    """What the pool of one edge is expected to cost in each cycle.

    The first is known. From then on, survivors cost what the pool's mean was, and children are
    convolutions, a little dearer than the convolutions before them and never dearer than the
    space's limits allow.
    """
    pool = config.space.initial_pool
    convs = [_cost(op) for op in pool if isinstance(op, Conv)]
    child = sum(convs) / len(convs) if convs else 0.0  # none: nothing can be morphed
    dearest = max(KERNEL_COST * (config.space.limits.depth_bound + 1.0), child)
    costs = [sum(map(_cost, pool))]
    size = len(pool)
    for before in config.schedule.cycles[:-1]:
        child = min(child * CHILD_GROWTH, dearest)
        survivors = min(before.survivors, size)  # a pool may have fewer than it should
        morphisms = before.morphisms if convs else 0
        costs.append(costs[-1] / size * survivors + morphisms * child)
        size = survivors + morphisms
    return costs


def _cost(op: Operation) -> float:
    match op:
        case Conv():
            return 1.0 + sum(op.expansions)
        case Conv1x7x1():
            return 2.0
        case Pool():
            return POOL_COST
        case _:
            return SKIP_COST

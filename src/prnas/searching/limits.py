"""Limits on the final network, before a search starts: whether they can be kept at all."""

from prnas.config.search import SearchConfig
from prnas.data.dataset import DataSet
from prnas.io.errors import UserError
from prnas.searching.cycle_end import MOST_STEPS
from prnas.space.analysis.counting import discoverable
from prnas.space.best_fit import Group, Option, best_fit, least_cost
from prnas.space.costs import CostKind, Costs, shown
from prnas.space.operations import Convolution, Operation, Skip, Zero
from prnas.space.pools import Pools
from prnas.space.shape import Role

MOST_NAMED = 3


def final_costs(config: SearchConfig, data: DataSet) -> Costs | None:
    """The costs of operations in the final network, if the search has to know them."""
    if not config.counts_costs:
        return None
    channels, height, width = data.shape
    network = config.final_network(data.num_classes, (channels, height, width))
    return Costs(network, config.final.latency)


def check_limits(config: SearchConfig, data: DataSet) -> None:
    """A `UserError` if latencies are missing, or if no network could keep the limits."""
    costs = final_costs(config, data)
    if costs is None:
        return
    if costs.table is not None:
        _check_table(costs, _reached(config), config)
    for kind, least in unmet_limits(costs, config).items():
        limit = config.final.limits.of(kind) or 0
        raise UserError(
            f"final.max_{kind}: no network of this search can have at most "
            f"{shown(kind, limit)}: the smallest one, of {costs.network.in_words}, has "
            f"{shown(kind, least)}. Raise the limit, or set final.channels or final.cells lower"
        )


def unmet_limits(costs: Costs, config: SearchConfig) -> dict[CostKind, int]:
    """The kinds whose limit no network of the search can keep, each with the least it can have."""
    if config.schedule.num_replacements > MOST_STEPS:
        return {}  # There may be smaller ones than those known.
    limits, reached = config.final.limits, _reached(config)
    least: dict[CostKind, int] = {
        kind: smallest(costs, config, reached, kind) for kind in limits.kinds
    }
    return {kind: cost for kind, cost in least.items() if cost > (limits.of(kind) or 0)}


def _reached(config: SearchConfig) -> tuple[Operation, ...]:
    return discoverable(config.space, min(config.schedule.num_replacements, MOST_STEPS))


def smallest(
    costs: Costs, config: SearchConfig, operations: tuple[Operation, ...], kind: CostKind
) -> int:
    """The least cost of a network of these operations, with no more skips than are allowed."""
    pools = Pools.initial(config.network.nodes, config.space.initial_pool, config.network.shape)
    usable = [op for op in operations if pools.shape.reads == "all" or not isinstance(op, Zero)]
    bounds = config.derivation.max_skips if _bounds_hold(config) else {}

    def option(role: Role, source: int, op: Operation) -> Option:
        cost = costs.of(role, source, op).of(kind)
        return Option(-cost, tuple(int(role == own and isinstance(op, Skip)) for own in bounds))

    groups = [
        Group(
            tuple(tuple(option(role, source, op) for op in usable) for source in range(state)),
            pools.shape.num_edges(state),
        )
        for role in pools.roles
        for state in pools.shape.nodes(pools.cell(role).num_nodes)
    ]
    # Where there is nothing but skips, more of them than the bound are taken.
    most = [max(bound, least_cost(groups, i)) for i, bound in enumerate(bounds.values())]
    choice = best_fit(groups, tuple(most))
    assert choice is not None
    taken = [
        group.slots[slot][index].value
        for group, options in zip(groups, choice, strict=True)
        for slot, index in enumerate(options)
        if index is not None
    ]
    return costs.around.of(kind) - sum(taken)


def _bounds_hold(config: SearchConfig) -> bool:
    """Whether every edge still has something else than a skip when the genotype is derived.

    A cell may have more skips than its bound where edges are left with nothing else.
    """
    cycles = config.schedule.cycles[:-1]
    convs = any(isinstance(op, Convolution) for op in config.space.initial_pool)
    return not cycles or (convs and all(cycle.protect_conv for cycle in cycles))


def _check_table(costs: Costs, reached: tuple[Operation, ...], config: SearchConfig) -> None:
    table = costs.table
    assert table is not None
    again = "measure it anew with `prnas latency`, with the same recipe and options as the search"
    if not table.network.like(costs.network):
        raise UserError(
            f"final.latency: the table is for a network of {table.network.in_words}, the search "
            f"for one of {costs.network.in_words} (or of another shape); {again}"
        )
    if config.schedule.num_replacements > MOST_STEPS:
        raise UserError(
            f"latencies are for searches of at most {MOST_STEPS} replacements, whose operations "
            f"can all be measured before; this one has {config.schedule.num_replacements}"
        )
    missing: list[str] = []
    for op in reached:
        try:
            for role in costs.network.shape.roles:
                for source in (0, costs.network.shape.inputs):
                    costs.of(role, source, op)
        except KeyError:
            missing.append(op.label)
    if missing:
        more = f" and {len(missing) - MOST_NAMED} more" if len(missing) > MOST_NAMED else ""
        raise UserError(
            f"final.latency: the table lacks {', '.join(missing[:MOST_NAMED])}{more}, which the "
            f"search can reach; {again}"
        )

"""Limits on the final network, before a search starts: whether they can be kept at all."""

from prnas.config.search import SearchConfig
from prnas.data.dataset import DataSet
from prnas.io.errors import UserError
from prnas.searching.cycle_end import MOST_STEPS
from prnas.space.analysis.counting import discoverable
from prnas.space.best_fit import Group, Option, least_cost
from prnas.space.costs import CostKind, Costs, shown
from prnas.space.operations import Operation, Zero
from prnas.space.pools import Pools

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
    steps = config.schedule.num_replacements
    reached = discoverable(config.space, min(steps, MOST_STEPS))
    if costs.table is not None:
        _check_table(costs, reached, config)
    if steps > MOST_STEPS:
        return  # There may be smaller ones than those known.
    for kind in config.final.limits.kinds:
        limit = config.final.limits.of(kind) or 0
        if (least := smallest(costs, config, reached, kind)) > limit:
            raise UserError(
                f"final.max_{kind}: no network of this search can have at most "
                f"{shown(kind, limit)}: the smallest one, of {costs.network.in_words}, has "
                f"{shown(kind, least)}. Raise the limit, or set final.channels or final.cells lower"
            )


def smallest(
    costs: Costs, config: SearchConfig, operations: tuple[Operation, ...], kind: CostKind
) -> int:
    """The least cost of a network of these operations."""
    pools = Pools.initial(config.network.nodes, config.space.initial_pool, config.network.shape)
    usable = [op for op in operations if pools.shape.reads == "all" or not isinstance(op, Zero)]
    groups = [
        Group(
            tuple(
                tuple(Option(0, (costs.of(role, source, op).of(kind),)) for op in usable)
                for source in range(state)
            ),
            pools.shape.num_edges(state),
        )
        for role in pools.roles
        for state in pools.shape.nodes(pools.cell(role).num_nodes)
    ]
    return costs.around.of(kind) + least_cost(groups, 0)


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

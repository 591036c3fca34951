"""A cycle in lines: the pools that it trains, and how its end changed them."""

from collections import Counter
from collections.abc import Iterable

from prnas.config.search import SearchConfig
from prnas.runs.records import Evidence
from prnas.space.analysis.statistics import PoolStatistics, average_statistics, cell_statistics
from prnas.space.change import CellChange, Change
from prnas.space.pools import CellPools, Pools
from prnas.space.shape import Role
from prnas.terminal.amounts import counted
from prnas.terminal.evidence_lines import in_a_line

MOST_NAMED = 8  # Operations in a list; a cycle's end may bring dozens of new ones.


def heading(config: SearchConfig, cycle: int, pools: str) -> str:
    """'cycle 2/9: 28 pools of 6 (50 % conv, ...); 3 epochs (1 grace)'."""
    plan = config.schedule.cycles[cycle - 1]
    grace = f" ({plan.grace_epochs} grace)" if plan.grace_epochs else ""
    epochs = counted(plan.epochs, "epoch")
    return f"cycle {cycle}/{len(config.schedule.cycles)}: {pools}; {epochs}{grace}"


def pools_in_short(pools: Pools) -> str:
    """'28 pools of 6 (50 % conv, 33 % pool, 17 % skip)'."""
    sizes = [len(pool.candidates) for role in pools.roles for pool in pools.cell(role).edges]
    least, most = min(sizes), max(sizes)
    size = str(most) if least == most else f"{least} to {most}"
    return f"{len(sizes)} pools of {size} ({shares(average_statistics(pools))})"


def shares(statistics: PoolStatistics) -> str:
    """'50 % conv, 33 % pool, 17 % skip'."""
    return ", ".join(
        f"{100 * share:.0f} % {name}"
        for name, share in statistics.types.items()
        if share or name != "zero"
    )


def ending(
    change: Change, pools: Pools, evidence: Evidence | None = None
) -> list[tuple[Role, list[str]]]:
    """Lines for each cell: what was pruned, how sure that is, what is new, what its pools hold."""
    lines: list[tuple[Role, list[str]]] = [
        (role, _cell(change.cell(role), pools.cell(role))) for role in pools.roles
    ]
    if evidence is not None:
        for role, texts in lines:
            if sure := in_a_line(evidence, role, pools.cell(role)):
                texts.insert(1, sure)
    return lines


def _cell(change: CellChange, pools: CellPools) -> list[str]:
    lines: list[str] = []
    pruned = [candidate.op.label for edge in change.edges for candidate in edge.pruned]
    added = [child for edge in change.edges for child in edge.added]
    if pruned:
        lines.append(f"pruned {len(pruned)}: {_counts(pruned)}")
    if added:
        names = _counts(f"{child.op.label} ({child.morphism})" for child in added)
        returned = sum(child.returned for child in added)
        back = f"; {returned} of them had been on their edge before" if returned else ""
        lines.append(f"new {len(added)}: {names}{back}")
    statistics = cell_statistics(pools)
    now = f"now {shares(statistics)}"
    if statistics.similarity is not None:
        now += f"; similarity {statistics.similarity:.2f}"
    return [*lines, now]


def _counts(names: Iterable[str]) -> str:
    """'6 avg 3x3, 5 skip': the most frequent first, equals by name."""
    counts = sorted(Counter(names).items(), key=lambda item: (-item[1], item[0]))
    texts = [f"{number} {name}" for name, number in counts[:MOST_NAMED]]
    if rest := sum(number for _, number in counts[MOST_NAMED:]):
        texts.append(f"{rest} more")
    return ", ".join(texts)

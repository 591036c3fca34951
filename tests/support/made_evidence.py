"""Evidence that nobody measured, for what shows it."""

from collections.abc import Iterator
from itertools import cycle
from typing import Any

from prnas.runs.records import EdgeDecision, Evidence, InputDecision, Worth
from prnas.space.change import Change
from prnas.space.pools import Pools

# (difference, error, p): beyond chance, at chance, and against.
OUTCOMES = ((0.0123, 0.004, 0.002), (0.001, 0.004, 0.8), (-0.02, 0.005, 0.0001))


def made_evidence(
    pools: Pools, change: Change, outcomes: Any = OUTCOMES, **changes: Any
) -> Evidence:
    """On every edge that loses something, one of the outcomes after the other."""
    numbers: Iterator[tuple[float, float, float]] = cycle(outcomes)
    edges: dict[Any, list[EdgeDecision | None]] = {}
    worths: dict[Any, list[Worth]] = {}
    for role in pools.roles:
        edges[role], worths[role] = [], []
        for pool, changed in zip(pools.cell(role).edges, change.cell(role).edges, strict=True):
            size = len(pool.candidates)
            worths[role].append(Worth(mean=[0.01] * size, error=[0.002] * size))
            gone = [one.op for one in changed.pruned]
            decision = None
            if gone:
                gap, error, p = next(numbers)
                kept = next(op.label for op in pool.candidates if op not in gone)
                decision = EdgeDecision(
                    kept=kept, pruned=gone[0].label, difference=gap, error=error, p=p
                )
            edges[role].append(decision)
    decisions = [one for cell in edges.values() for one in cell if one is not None]
    sure = [one.difference for one in decisions if one.p < 0.05]
    inputs: dict[Any, list[InputDecision]] = {role: [] for role in pools.roles}
    fields: dict[str, Any] = {
        "scoring": "weights",
        "renormalise": False,
        "images": 1024,
        "saliency_images": 512,
        "passes": 56,
        "share": 0.19,
        "removal": worths,
        "saliency": worths,
        "edges": edges,
        "inputs": inputs,
        "decisions": len(decisions),
        "supported": sum(gap > 0 for gap in sure),
        "contradicted": sum(gap < 0 for gap in sure),
    }
    return Evidence(**{**fields, **changes})

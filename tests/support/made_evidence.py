"""Evidence that nobody measured, for what shows it."""

from collections.abc import Iterator
from itertools import cycle
from random import Random
from typing import Any

from prnas.report.search_view import SearchView
from prnas.report.view import RunInfo
from prnas.runs.records import (
    CycleRecord,
    EdgeDecision,
    Evidence,
    GenotypeRecord,
    InputDecision,
    Worth,
)
from prnas.space.change import Change
from prnas.space.derivation import derive
from prnas.space.genotype import ROLES
from prnas.space.pools import Pools
from tests.support.synthetic_search import cycle_record, quick

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
            gone = [pruned.op for pruned in changed.pruned]
            decision = None
            if gone:
                gap, error, p = next(numbers)
                survivor = next(op.label for op in pool.candidates if op not in gone)
                decision = EdgeDecision(
                    kept=survivor, pruned=gone[0].label, difference=gap, error=error, p=p
                )
            edges[role].append(decision)
    decisions = [decision for cell in edges.values() for decision in cell if decision is not None]
    sure = [decision.difference for decision in decisions if decision.p < 0.05]
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


def measured_view(last_has_evidence: bool = True) -> tuple[SearchView, list[CycleRecord]]:
    """A search of two cycles."""
    config = quick("schedule.cycles=[{epochs: 1, grace_epochs: 0, morphisms: 0, candidates: 2}, "
                   "{epochs: 1, grace_epochs: 0, morphisms: 0, candidates: 1}]")  # fmt: skip
    made = SearchView(RunInfo("run", "runs/run", config.to_data()))
    pools = Pools.initial(4, config.space.initial_pool)
    generator, records, genotype = Random(1), list[CycleRecord](), None
    for number in range(2):
        weights: dict[Any, list[list[float]]] = {
            role: [[generator.random() for _ in pool.candidates] for pool in pools.cell(role).edges]
            for role in ROLES
        }
        if number:
            genotype, change = derive(pools, weights, generator)
        else:
            changes = [
                pools.cell(role).evolve(weights[role], 2, 0, config.space.limits, generator)[1]
                for role in ROLES
            ]
            change = Change(*changes)
        record = cycle_record(number, pools, change, pools.apply(change))
        if last_has_evidence or not number:
            record = record.model_copy(update={"evidence": made_evidence(pools, change)})
        records.append(record)
        pools = pools.apply(change)
    for record in records:
        made.add(record)
    assert genotype is not None
    made.add(GenotypeRecord(genotype=genotype.to_json()))
    return made, records

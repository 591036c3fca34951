"""Evidence in the report: numbers beside the candidates, a curve over cycles, one sentence."""

from random import Random

import pytest

from prnas.io.errors import FormatError
from prnas.report.page import page_data
from prnas.report.plots import plots_of
from prnas.report.search_view import SearchView
from prnas.report.view import RunInfo
from prnas.runs.records import CycleRecord, GenotypeRecord
from prnas.space.derivation import derive
from prnas.space.genotype import ROLES
from prnas.space.pools import Pools
from tests.support.made_evidence import made_evidence
from tests.support.synthetic_search import cycle_record, quick


def view(last_has_evidence: bool = True) -> tuple[SearchView, list[CycleRecord]]:
    """A search of two cycles."""
    config = quick("schedule.cycles=[{epochs: 1, grace_epochs: 0, morphisms: 0, candidates: 2}, "
                   "{epochs: 1, grace_epochs: 0, morphisms: 0, candidates: 1}]")  # fmt: skip
    made = SearchView(RunInfo("run", "runs/run", config.to_data()))
    pools = Pools.initial(4, config.space.initial_pool)
    generator, records = Random(1), list[CycleRecord]()
    for number in range(2):
        weights = {
            role: [[generator.random() for _ in pool.candidates] for pool in pools.cell(role).edges]
            for role in ROLES
        }
        if number:
            genotype, change = derive(pools, weights, generator)  # pyright: ignore
        else:
            changes = [
                pools.cell(role).evolve(weights[role], 2, 0, config.space.limits, generator)[1]
                for role in ROLES
            ]
            change = derive(pools, weights, generator)[1].__class__(*changes)  # pyright: ignore
        record = cycle_record(number, pools, change, pools.apply(change))
        if last_has_evidence or not number:
            record = record.model_copy(update={"evidence": made_evidence(pools, change)})
        records.append(record)
        pools = pools.apply(change)
    for record in records:
        made.add(record)
    made.add(GenotypeRecord(genotype=genotype.to_json()))  # pyright: ignore
    return made, records


def test_every_edge_has_its_decision() -> None:
    made, records = view()
    steps = made.cycles.data()["steps"]
    for cycle, record in enumerate(records):
        for role in ROLES:
            assert record.evidence is not None
            for edge, decision in zip(steps[role][cycle], record.evidence.edges[role], strict=True):
                assert decision is not None
                assert edge[4]["removal"][0] == [0.01, 0.002]
                assert edge[4]["decision"] == [
                    *(decision.kept, decision.pruned),
                    *(decision.difference, decision.error, decision.p),
                ]


def test_the_share_of_decisions_beyond_chance_is_a_curve() -> None:
    made, _ = view(last_has_evidence=False)
    plot = next(plot for plot in plots_of(made) if plot.id == "certainty")
    better, against = plot.lines
    # 28 edges: 10 sure, 9 at chance, 9 against.
    assert better.ys == [pytest.approx(10 / 28, rel=1e-3), None]
    assert against.ys == [pytest.approx(9 / 28, rel=1e-3), None]
    assert better.xs == [1, 2]


def test_one_sentence_of_how_sure_it_is() -> None:
    made, _ = view()
    facts = dict(made.data()["facts"])
    assert facts["How sure"].startswith("unsure: 20 of 56 decisions were beyond chance")
    assert "Scoring" not in facts
    assert page_data([made])


def test_evidence_that_does_not_fit_is_refused() -> None:
    made, (first, _) = view()
    assert first.evidence is not None
    edges = {role: cell[1:] for role, cell in first.evidence.edges.items()}
    broken = first.evidence.model_copy(update={"edges": edges})
    with pytest.raises(FormatError, match="evidence"):
        made.add(first.model_copy(update={"evidence": broken}))

"""Evidence in the report: numbers beside the candidates, a curve over cycles, one sentence."""

import pytest

from prnas.io.errors import FormatError
from prnas.report.page import page_data
from prnas.report.plots import plots_of
from prnas.space.genotype import ROLES
from tests.support.made_evidence import measured_view


def test_every_edge_has_its_decision() -> None:
    made, records = measured_view()
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
    made, _ = measured_view(last_has_evidence=False)
    plot = next(plot for plot in plots_of(made) if plot.id == "certainty")
    better, against = plot.lines
    # 28 edges: 10 sure, 9 at chance, 9 against.
    assert better.ys == [pytest.approx(10 / 28, rel=1e-3), None]
    assert against.ys == [pytest.approx(9 / 28, rel=1e-3), None]
    assert better.xs == [1, 2]


def test_one_sentence_of_how_sure_it_is() -> None:
    made, _ = measured_view()
    facts = dict(made.data()["facts"])
    assert facts["How sure"].startswith("unsure: 20 of 56 decisions were beyond chance")
    assert "Scoring" not in facts
    assert page_data([made])


def test_evidence_that_does_not_fit_is_refused() -> None:
    made, (first, _) = measured_view()
    assert first.evidence is not None
    edges = {role: cell[1:] for role, cell in first.evidence.edges.items()}
    broken = first.evidence.model_copy(update={"edges": edges})
    with pytest.raises(FormatError, match="evidence"):
        made.add(first.model_copy(update={"evidence": broken}))

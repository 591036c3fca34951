"""Evidence in the report: numbers beside the candidates, a curve over cycles, one sentence."""

import pytest

from prnas.io.errors import FormatError
from prnas.report.page import page_data
from prnas.report.plots import Plot, plots_of
from prnas.runs.records import DerivedGenotype
from prnas.space.genotype import ROLES, Role
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


def test_what_measurements_would_derive_is_a_curve_over_cycles() -> None:
    made, (first, last) = measured_view()
    assert "skips" not in {plot.id for plot in plots_of(made) if any(map(any, _values(plot)))}
    assert made.genotype is not None
    genotype = made.genotype.to_json()
    for number, record in enumerate((first, last)):
        skips: dict[Role, float] = {"normal": 0.25 * number, "reduction": 0.5}
        derived = DerivedGenotype(genotype=genotype, edits=3 if number else None, skips=skips)
        made.ends[number] = record.model_copy(update={"derived": derived})
    plots = {plot.id: plot for plot in plots_of(made)}
    (edits,) = plots["edits"].lines
    assert (plots["edits"].title, edits.xs, edits.ys) == (
        *("Edits since the cycle before", [1, 2], [None, 3]),
    )
    assert [line.ys for line in plots["skips"].lines] == [[0.0, 0.25], [0.5, 0.5]]
    assert [line.label for line in plots["skips"].lines] == ["normal cell", "reduction cell"]
    assert page_data([made])


def _values(plot: Plot) -> list[list[float | None]]:
    return [list(line.ys) for line in plot.lines]


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

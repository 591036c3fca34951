"""How sure a search is, as a person sees it."""

from pathlib import Path
from random import Random

import pytest

from prnas.runs.certainty import advice, at_chance, in_short, verdict
from prnas.runs.events import SearchResult
from prnas.runs.records import CycleRecord, Evidence, InputDecision
from prnas.space.change import Change
from prnas.space.derivation import derive
from prnas.space.genotype import ROLES, Genotype
from prnas.space.operations import from_label
from prnas.space.pools import CellPools, Pools
from prnas.space.shape import NASBENCH201
from prnas.terminal.display import Display
from prnas.terminal.ends import show_result
from prnas.terminal.evidence_lines import in_a_line, show_table
from tests.support.made_evidence import OUTCOMES, made_evidence
from tests.support.synthetic_search import cycle_record, quick, start_of

OPS = [from_label(label) for label in ("conv 3x3", "skip")]


def ended() -> tuple[Pools, Change, Genotype]:
    pools = Pools(CellPools.initial(2, OPS), CellPools.initial(2, OPS))
    weights = {role: [[1.0, 0.0]] * 5 for role in ROLES}
    genotype, change = derive(pools, weights, Random(0))  # pyright: ignore
    return pools, change, genotype


def records(*evidence: Evidence | None) -> tuple[CycleRecord, ...]:
    pools, change, _ = ended()
    record = cycle_record(0, pools, change, pools.apply(change))
    return tuple(record.model_copy(update={"evidence": one}) for one in evidence)


def test_counts_in_short() -> None:
    pools, change, _ = ended()
    evidence = made_evidence(pools, change)  # ten edges: 4 sure, 3 at chance, 3 against
    assert in_short(evidence) == (
        "4 of 10 decisions beyond chance (0.5 expected by chance), 3 against; "
        "measured on 1,024 images"
    )
    assert at_chance(evidence)
    sure = made_evidence(pools, change, OUTCOMES[:1])
    assert "against" not in in_short(sure)
    assert not at_chance(sure)
    nothing = made_evidence(pools, change, decisions=0, supported=0, contradicted=0)
    assert in_short(nothing) == "nothing was decided by what candidates are worth"
    assert not at_chance(nothing)


def test_edges_without_a_comparison_are_told() -> None:
    """Of some there was no time to measure anything; of others, a rule decided."""
    pools, change, _ = ended()
    whole = made_evidence(pools, change, OUTCOMES[:1])
    kept, nothing = whole.edges["normal"], [None] * 5
    evidence = whole.model_copy(
        update={
            "edges": {"normal": [*kept[:2], None, None, None], "reduction": nothing},
            "uncompared": {
                "normal": [None, None, "rule", "unmeasured", None],
                "reduction": ["unmeasured"] * 5,
            },
        }
    )
    assert in_short(evidence).endswith("; 1 edge decided by a rule; 6 edges not measured")
    line = in_a_line(evidence, "normal", pools.normal)
    assert line is not None
    assert line.startswith("sure of 2 of 2 edges: ")
    assert line.endswith("; by a rule, such as a bound on skips: c(k-2) → B2; 1 edge not measured")
    assert in_a_line(evidence, "reduction", pools.normal) == "5 edges not measured"
    said = verdict(records(evidence, evidence), advise=False)
    assert said is not None
    assert said.endswith("of the last 10; 12 more were not measured.")


def test_the_end_names_what_a_rule_decided(capsys: pytest.CaptureFixture[str]) -> None:
    pools, change, genotype = ended()
    by_rule = [None, *["rule"] * 4]
    uncompared = {"normal": by_rule, "reduction": [None] * 5}
    evidence = made_evidence(pools, change, OUTCOMES[:1], uncompared=uncompared)
    edges = {**evidence.edges, "normal": [evidence.edges["normal"][0], *[None] * 4]}
    show_table(evidence.model_copy(update={"edges": edges}), genotype)
    lines = capsys.readouterr().out.splitlines()
    (line,) = [line for line in lines if "normal: c(k-1) → B1" in line]
    assert "conv 3x3" in line
    assert "by a rule, such as a bound on skips" in line
    assert sum("by a rule" in line for line in lines) == 3  # of four edges, one is not in the cell


def test_every_edge_is_named_the_surest_first() -> None:
    pools, change, _ = ended()
    evidence = made_evidence(pools, change)
    line = in_a_line(evidence, "normal", pools.normal)
    what = "conv 3x3 over skip by"
    by = f"{what} 0.0123 ± 0.0040"
    assert line == (
        f"sure of 2 of 5 edges: c(k-2) → B1 {by}; c(k-1) → B2 {by}; "
        f"against the measurement: c(k-2) → B2 {what} -0.0200 ± 0.0050; "
        f"at chance: c(k-1) → B1 {what} 0.0010 ± 0.0040; B1 → B2 {what} 0.0010 ± 0.0040"
    )
    line = in_a_line(made_evidence(pools, change, OUTCOMES[:1]), "normal", pools.normal)
    assert line is not None
    assert line.count(by) == 5
    stays = Change(*[change.normal.__class__(tuple(type(change.normal.edges[0])() for _ in range(5)))] * 2)  # fmt: skip  # noqa: E501
    assert in_a_line(made_evidence(pools, stays), "normal", pools.normal) is None


@pytest.mark.parametrize(
    ("outcomes", "word", "helps"),
    [
        (OUTCOMES[:1], "sure: 20 of 20", False),
        ((*OUTCOMES[:1] * 2, OUTCOMES[1]), "fairly sure: 14 of 20", True),
        (OUTCOMES, "unsure: 8 of 20", True),
        (OUTCOMES[1:2], "hardly better than chance: 0 of 20", True),
    ],
)
def test_one_sentence_at_the_end(outcomes: object, word: str, helps: bool) -> None:
    pools, change, _ = ended()
    evidence = made_evidence(pools, change, outcomes)
    said = verdict(records(evidence, evidence))
    assert said is not None
    assert said.startswith(f"{word} decisions were beyond chance")
    assert ("What would help: more epochs a cycle, more images" in said) == helps


def test_nothing_is_said_of_what_was_not_measured() -> None:
    assert verdict(records(None, None)) is None
    assert verdict(()) is None


def test_advice_depends_on_what_decides() -> None:
    pools, change, _ = ended()
    said = {
        scoring: advice(made_evidence(pools, change, scoring=scoring))
        for scoring in ("weights", "removal", "saliency", "blend")
    }
    assert "architecture.scoring=removal" in said["weights"]
    assert "travel" in said["weights"]
    assert "travel" not in said["removal"]
    assert "evidence.share" in said["removal"]
    assert said["saliency"] == "What would help: more epochs a cycle or more images."
    assert "travel" in said["blend"]
    by_weights = records(made_evidence(pools, change, scoring="weights"))
    assert "a larger architecture.lr " not in (verdict(by_weights) or "")
    config = quick("architecture.lr=6e-4")
    result = SearchResult(ended()[2], None, (), by_weights, 1.0, config=config)
    assert "a larger architecture.lr or" in (result.how_sure or "")  # travel has no effect there


def test_states_of_cells_with_one_input(capsys: pytest.CaptureFixture[str]) -> None:
    """They are called as in the table of the cells that stands above."""
    pools = Pools.initial(3, OPS, NASBENCH201)
    genotype, change = derive(pools, {"normal": [[1.0, 0.0]] * 6}, Random(0), output="last")
    evidence = made_evidence(pools, change, OUTCOMES[:1])
    line = in_a_line(evidence, "normal", pools.normal)
    assert line is not None
    assert line.startswith("sure of 6 of 6 edges: c(k-1) → B1 conv 3x3 over skip")
    show_table(evidence, genotype)
    out = capsys.readouterr().out
    for edge in ("c(k-1) → B1", "c(k-1) → B2", "B1 → B2", "c(k-1) → B3", "B1 → B3", "B2 → B3"):
        assert out.count(f"normal: {edge} ") == 1
    assert "c(k-2)" not in out


@pytest.mark.parametrize(
    ("limited_by", "named"),
    [("share", ["a larger evidence.share"]), ("images", ["a larger evidence.images"]),
     ("half", []), (None, ["a larger evidence.share"])],
)  # fmt: skip
def test_advice_names_what_bounded_the_images(limited_by: object, named: list[str]) -> None:
    pools, change, _ = ended()
    said = advice(made_evidence(pools, change, scoring="removal", limited_by=limited_by))
    assert [words for words in ("evidence.share", "evidence.images") if words in said] == [
        words.rpartition(" ")[2] for words in named
    ]


def test_groups_are_of_what_was_drawn() -> None:
    pools, change, _ = ended()
    evidence = made_evidence(pools, change, scoring="paths", path_groups=20)
    assert in_short(evidence).endswith("measured on 20 groups of paths")
    assert in_short(evidence, by_cells=True).endswith("measured on 20 groups of cells")
    sampled = ["architecture.scoring=paths", "architecture.step=sampled-cells"]
    assert quick(*sampled).judges_by_cells
    assert not quick(*sampled[:1], "architecture.step=sampled").judges_by_cells


def test_a_warning_when_most_decisions_are_at_chance(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pools, change, _ = ended()
    display = Display()
    display.on_start(start_of(quick(), tmp_path))
    sure, unsure = (made_evidence(pools, change, outcomes) for outcomes in (OUTCOMES[:1], OUTCOMES))
    for record in records(sure, unsure, unsure):
        display.on_cycle(record, pools.apply(change))
    out = capsys.readouterr().out
    assert out.count("10 of 10 decisions beyond chance") == 1
    assert out.count("most are no better than chance") == 2
    said = "note: most decisions are no better than chance. What would help: "
    assert out.count(said) == 1  # once is enough
    assert "  normal: sure of 5 of 5 edges: " in out


def test_the_end_has_every_edge(capsys: pytest.CaptureFixture[str]) -> None:
    pools, change, genotype = ended()
    inputs = {
        role: [InputDecision(node=3, kept=1, pruned=2, difference=0.5, error=0.1, p=0.001)]
        for role in ROLES
    }
    evidence = made_evidence(pools, change, inputs=inputs)
    cycles = records(evidence)
    show_result(SearchResult(genotype, None, (), cycles, 1.0))
    out = capsys.readouterr().out
    lines = [line for line in out.splitlines() if " ± " in line]
    assert len(lines) == 8 + 2  # the edges of the genotype, and one choice of inputs a cell
    assert any("normal: B2" in line and "input c(k-1)" in line for line in lines)
    assert "how sure" in out
    assert {line.split()[-1] for line in lines} == {"yes", "no", "against"}

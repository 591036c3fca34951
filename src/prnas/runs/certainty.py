"""The certainty of a search's decisions, in words."""

from collections.abc import Sequence

from prnas.runs.records import CycleRecord, EdgeDecision, Evidence, InputDecision, Uncompared
from prnas.space.evidence import LEVEL

MOSTLY = 0.5  # below this share of decisions beyond chance, most are at chance


def at_chance(evidence: Evidence) -> bool:
    """Whether most decisions are no better than chance."""
    return evidence.decisions > 0 and evidence.supported < MOSTLY * evidence.decisions


def beyond_chance(decision: EdgeDecision | InputDecision) -> bool:
    return decision.p < LEVEL


def num_uncompared(evidence: Evidence, reason: Uncompared) -> int:
    """The number of edges that lost a candidate and have no comparison for this reason."""
    return sum(edges.count(reason) for edges in evidence.uncompared.values())


def in_short(evidence: Evidence, by_cells: bool = False) -> str:
    """'9 of 28 decisions beyond chance (1.4 expected by chance), 2 against; 595 images; 4 edges …'.

    The last are those that were not compared. `by_cells`: groups are of cells, not of paths.
    """
    by_rule, unmeasured = (num_uncompared(evidence, reason) for reason in ("rule", "unmeasured"))
    rest = f"; {_edges(by_rule)} decided by a rule" if by_rule else ""
    rest += f"; {_edges(unmeasured)} not measured" if unmeasured else ""
    if not evidence.decisions:
        return f"nothing was decided by what candidates are worth{rest}"
    expected = f"{LEVEL * evidence.decisions:.1f} expected by chance"
    against = f", {evidence.contradicted} against" if evidence.contradicted else ""
    decisions = f"{evidence.supported} of {evidence.decisions} decisions beyond chance"
    measured = f"{evidence.images:,} images"
    if evidence.scoring == "paths":
        measured = f"{evidence.path_groups:,} groups of {'cells' if by_cells else 'paths'}"
    return f"{decisions} ({expected}){against}; measured on {measured}{rest}"


def _edges(number: int) -> str:
    return f"{number} edge{'' if number == 1 else 's'}"


def advice(evidence: Evidence, mover: str = "architecture.travel") -> str:
    """Advice on how to make decisions surer, by settings that have an effect.

    `mover`: the key that moves architecture weights.
    """
    more = ["more epochs a cycle", "more images"]
    if evidence.scoring in ("weights", "blend"):
        more.append(f"a larger {mover}")
    if evidence.scoring == "weights":
        more.append("architecture.scoring=removal")
    elif evidence.scoring in ("removal", "blend", "paths"):
        bound = evidence.limited_by or "share"
        more += [] if bound == "half" else [f"a larger evidence.{bound}"]
    return "What would help: " + ", ".join(more[:-1]) + " or " + more[-1] + "."


def verdict(
    cycles: Sequence[CycleRecord], mover: str = "architecture.travel", advise: bool = True
) -> str | None:
    """One sentence of how sure the genotype is; `None` if nothing was measured.

    And, with `advise`, one of what would help, unless it is sure.
    """
    measured = [record.evidence for record in cycles if record.evidence is not None]
    decisions = sum(evidence.decisions for evidence in measured)
    if not decisions:
        return None
    last, supported = measured[-1], sum(evidence.supported for evidence in measured)
    share = supported / decisions
    if share >= 0.8:
        word = "sure"
    elif share >= MOSTLY:
        word = "fairly sure"
    elif share > 2 * LEVEL:
        word = "unsure"
    else:
        word = "hardly better than chance"
    said = f"{word}: {supported} of {decisions} decisions were beyond chance, {last.supported} of "
    said += f"the last {last.decisions}"
    contradicted = sum(evidence.contradicted for evidence in measured)
    if contradicted:
        said += f"; {contradicted} went against what was measured"
    if unmeasured := sum(num_uncompared(evidence, "unmeasured") for evidence in measured):
        said += f"; {unmeasured} more were not measured"
    return f"{said}." + (" " + advice(last, mover) if advise and share < 0.8 else "")

"""The certainty of a search's decisions, in words."""

from collections.abc import Sequence

from prnas.runs.records import CycleRecord, EdgeDecision, Evidence, InputDecision
from prnas.space.evidence import LEVEL

MOSTLY = 0.5  # below this share of decisions beyond chance, most are at chance


def at_chance(evidence: Evidence) -> bool:
    """Whether most decisions are no better than chance."""
    return evidence.decisions > 0 and evidence.supported < MOSTLY * evidence.decisions


def beyond_chance(decision: EdgeDecision | InputDecision) -> bool:
    return decision.p < LEVEL


def in_short(evidence: Evidence, by_cells: bool = False) -> str:
    """'9 of 28 decisions beyond chance (1.4 expected by chance), 2 against; 595 images'.

    `by_cells`: groups are of cells, not of paths.
    """
    if not evidence.decisions:
        return "nothing had to be decided"
    expected = f"{LEVEL * evidence.decisions:.1f} expected by chance"
    against = f", {evidence.contradicted} against" if evidence.contradicted else ""
    decisions = f"{evidence.supported} of {evidence.decisions} decisions beyond chance"
    measured = f"{evidence.images:,} images"
    if evidence.scoring == "paths":
        measured = f"{evidence.path_groups:,} groups of {'cells' if by_cells else 'paths'}"
    return f"{decisions} ({expected}){against}; measured on {measured}"


def advice(evidence: Evidence, mover: str = "architecture.travel") -> str:
    """Advice on how to make decisions surer; `mover`: the key that moves architecture weights."""
    more = ["more epochs a cycle", "more images"]
    if evidence.scoring in ("weights", "blend"):
        more.append(f"a larger {mover}")
    if evidence.scoring == "weights":
        more.append("architecture.scoring=removal")
    elif evidence.scoring in ("removal", "blend", "paths"):
        more.append("a larger evidence.share")
    return "What would help: " + ", ".join(more[:-1]) + " or " + more[-1] + "."


def verdict(cycles: Sequence[CycleRecord], mover: str = "architecture.travel") -> str | None:
    """One sentence of how sure the genotype is; `None` if nothing was measured."""
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
    return f"{said}." + ("" if share >= 0.8 else " " + advice(last, mover))

"""The certainty of the decisions at a cycle's end, in lines and as a table."""

from prnas.runs.certainty import beyond_chance
from prnas.runs.records import EdgeDecision, Evidence, InputDecision
from prnas.space.genotype import Genotype
from prnas.space.pools import CellPools, edge_positions
from prnas.space.shape import Role
from prnas.terminal.cells import state_name
from prnas.terminal.output import show, show_heading, table

RISES = "how much the loss rises without it"
BY_RULE = "by a rule, such as a bound on skips"


def edge_name(position: tuple[int, int], inputs: int) -> str:
    """'c(k-1) → B2', in cells of so many inputs."""
    state, source = position
    return f"{state_name(source, inputs)} → {state_name(state, inputs)}"


def by_how_much(decision: EdgeDecision | InputDecision) -> str:
    """'0.0123 ± 0.0040': by how much more the loss rises without what was kept."""
    return f"{decision.difference:.4f} ± {decision.error:.4f}"


def in_a_line(evidence: Evidence, role: Role, pools: CellPools) -> str | None:
    """The decisions on a cell's edges, the surest first.

    'sure of 1 of 2 edges: B1 → B2 skip over …; at chance: B1 → B3 avg 3x3 over …'. Then what was
    decided without a comparison.
    """
    edges = zip(pools.positions, evidence.edges.get(role, ()), strict=False)
    decided = [(position, decision) for position, decision in edges if decision is not None]
    without = _without_comparison(evidence, role, pools)
    if not decided:
        return without
    groups: dict[str, list[str]] = {"yes": [], "against": [], "no": []}
    for at, decision in sorted(decided, key=lambda pair: pair[1].p):
        edge = edge_name(at, pools.shape.inputs)
        by = by_how_much(decision)
        groups[_chance(decision)].append(f"{edge} {decision.kept} over {decision.pruned} by {by}")
    sure, against, at_chance = groups.values()
    line = f"sure of {len(sure)} of {len(decided)} edges"
    if sure:
        line += ": " + "; ".join(sure)
    if against:
        line += "; against the measurement: " + "; ".join(against)
    if at_chance:
        line += "; at chance: " + "; ".join(at_chance)
    return f"{line}; {without}" if without else line


def _without_comparison(evidence: Evidence, role: Role, pools: CellPools) -> str | None:
    """'by a rule (…): B1 → B2; 24 edges not measured'."""
    reasons = evidence.uncompared.get(role, [])
    edges = zip(pools.positions, reasons, strict=False)
    by_rule = [edge_name(at, pools.shape.inputs) for at, reason in edges if reason == "rule"]
    said = [f"{BY_RULE}: {', '.join(by_rule)}"] if by_rule else []
    if unmeasured := reasons.count("unmeasured"):
        said.append(f"{unmeasured} edge{'' if unmeasured == 1 else 's'} not measured")
    return "; ".join(said) or None


def show_table(evidence: Evidence, genotype: Genotype) -> None:
    """Show what every edge of a genotype was chosen over, and whether that is beyond chance."""
    rows: list[list[str]] = []
    inputs = genotype.shape.inputs
    for role in genotype.roles:
        cell = genotype.cell(role)
        positions = edge_positions(cell.num_nodes, cell.shape)
        reasons = dict(zip(positions, evidence.uncompared.get(role, ()), strict=False))
        operations = {(state, edge.input): edge.op for state, edge in cell.edges}
        for position, decision in zip(positions, evidence.edges.get(role, ()), strict=False):
            if position not in operations:
                continue
            name = f"{role}: {edge_name(position, inputs)}"
            if decision is not None:
                what = [decision.kept, decision.pruned, by_how_much(decision), _chance(decision)]
                rows.append([name, *what])
            elif reasons.get(position) == "rule":
                rows.append([name, operations[position].label, "", "", BY_RULE])
        for decision in evidence.inputs.get(role, ()):
            states = (decision.node, decision.kept, decision.pruned)
            node, survivor, pruned = (state_name(state, inputs) for state in states)
            what = [
                f"input {survivor}",
                f"input {pruned}",
                by_how_much(decision),
                _chance(decision),
            ]
            rows.append([f"{role}: {node}", *what])
    if rows:
        show("")
        by = "how much lower the loss is with it" if evidence.scoring == "paths" else RISES
        show_heading(f"what was chosen, by {by}")
        show(table(["", "kept", "rather than", "by", "beyond chance"], rows, right=(3,)))


def _chance(decision: EdgeDecision | InputDecision) -> str:
    if not beyond_chance(decision):
        return "no"
    return "yes" if decision.difference > 0 else "against"

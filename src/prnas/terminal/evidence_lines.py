"""The certainty of the decisions at a cycle's end, in lines and as a table."""

from prnas.runs.certainty import beyond_chance
from prnas.runs.records import EdgeDecision, Evidence, InputDecision
from prnas.space.genotype import Genotype
from prnas.space.pools import CellPools, edge_positions
from prnas.space.shape import Role
from prnas.terminal.cells import state_name
from prnas.terminal.output import show, show_heading, table

MOST_NAMED = 4  # decisions in a line
RISES = "how much the loss rises without it"


def edge_name(position: tuple[int, int], inputs: int) -> str:
    """'c(k-1) → B2', in cells of so many inputs."""
    state, source = position
    return f"{state_name(source, inputs)} → {state_name(state, inputs)}"


def by_how_much(decision: EdgeDecision | InputDecision) -> str:
    """'0.0123 ± 0.0040': by how much more the loss rises without what was kept."""
    return f"{decision.difference:.4f} ± {decision.error:.4f}"


def in_a_line(evidence: Evidence, role: Role, pools: CellPools) -> str | None:
    """The surest decisions on a cell's edges: 'sure of 5 of 14 edges: B1 → B2 skip over …'."""
    inputs = pools.shape.inputs
    edges = zip(pools.positions, evidence.edges.get(role, ()), strict=False)
    decided = [(position, decision) for position, decision in edges if decision is not None]
    if not decided:
        return None
    sure = [
        (at, decision)
        for at, decision in decided
        if beyond_chance(decision) and decision.difference > 0
    ]
    sure.sort(key=lambda pair: pair[1].p)
    named = [
        f"{edge_name(at, inputs)} {decision.kept} over {decision.pruned} by {by_how_much(decision)}"
        for at, decision in sure[:MOST_NAMED]
    ]
    if rest := len(sure) - len(named):
        named.append(f"{rest} more")
    names = ": " + "; ".join(named) if named else ""
    return f"sure of {len(sure)} of {len(decided)} edges{names}"


def show_table(evidence: Evidence, genotype: Genotype) -> None:
    """Show what every edge of a genotype was chosen over, and whether that is beyond chance."""
    rows: list[list[str]] = []
    inputs = genotype.shape.inputs
    for role in genotype.roles:
        cell = genotype.cell(role)
        chosen = {(state, edge.input) for state, edge in cell.edges}
        positions = edge_positions(cell.num_nodes, cell.shape)
        for position, decision in zip(positions, evidence.edges.get(role, ()), strict=False):
            if decision is not None and position in chosen:
                what = [decision.kept, decision.pruned, by_how_much(decision), _chance(decision)]
                rows.append([f"{role}: {edge_name(position, inputs)}", *what])
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

"""The cycles of a search for the page: pools, architecture weights, who left and who came."""

from collections.abc import Iterable, Sequence
from typing import Any

from prnas.drawing.colors import color_of
from prnas.io.errors import FormatError
from prnas.report.plain_data import rounded
from prnas.runs.records import CycleRecord, Evidence
from prnas.space.analysis import statistics
from prnas.space.change import Change, EdgeChange
from prnas.space.operations import CATEGORIES, Operation, from_label
from prnas.space.pools import edge_positions
from prnas.space.scores import Scores, softmax
from prnas.space.shape import DARTS, MAX_NODES, CellShape, Role

ALWAYS_SHOWN = ("conv", "pool", "skip")  # categories; others, when a pool has held one
Edges = list[list[Operation]]  # the candidates of every edge


class Cycles:
    """Operations and morphisms are numbered as they appear: each is named once in the page."""

    def __init__(
        self,
        nodes: int | None,
        initial: Sequence[Any],
        scores: Scores = softmax,
        shape: CellShape = DARTS,
    ) -> None:
        self._scores, self._shape = scores, shape
        self.roles = shape.roles
        self._ops: dict[Operation, int] = {}
        self._morphisms: dict[str, int] = {}
        self._steps: dict[Role, list[Any]] = {role: [] for role in self.roles}
        # Statistics of the pools that each cycle trained, and in the end of what remained.
        self.pools: dict[Role, list[dict[str, Any]]] = {role: [] for role in self.roles}
        self.parents: dict[Role, list[float | None]] = {role: [] for role in self.roles}
        # At each cycle's end, the shares of decisions that are beyond chance, and against the odds.
        self.supported: list[float | None] = []
        self.contradicted: list[float | None] = []
        self.discoverable: int | None = None  # operations that a cell can have at all
        self._seen: dict[Role, set[Operation]] = {role: set() for role in self.roles}
        self._now: dict[Role, Edges] = {}
        start = _initial(nodes, initial, shape)
        if start:
            for role in self.roles:
                self._set(role, start)

    def add(self, record: CycleRecord) -> None:
        change = Change.from_json(record.change)
        for cells in (change.roles, record.pools, record.architecture_weights):
            if set(cells) != set(self.roles):
                what = f"its cells must be {' and '.join(self.roles)}, got {', '.join(cells)}"
                raise FormatError([f"cycle {record.cycle}: {what:.200}"])
        discoverable = record.statistics.get("discoverable")
        self.discoverable = discoverable if type(discoverable) is int else self.discoverable
        self._add_certainty(record.evidence)
        for role in self.roles:
            edges = [[_operation(label) for label in pool] for pool in record.pools[role]]
            changes = change.cell(role).edges
            weights = record.architecture_weights[role]
            if not len(edges) == len(changes) == len(weights):
                raise FormatError(
                    [f"cycle {record.cycle}: the {role} cell's edges differ in number"]
                )
            if not self.pools[role]:
                self._set(role, edges)
            rows = zip(edges, weights, changes, strict=True)
            measured = _evidence(record.evidence, role, edges, record.cycle)
            self._steps[role].append(
                [
                    [*self._edge(*row, record.cycle), *([edge] if edge else [])]
                    for row, edge in zip(rows, measured, strict=True)
                ]
            )
            self.parents[role].append(rounded(statistics.parent_probability(changes)))
            self._set(role, list(map(_after, edges, changes)))

    def _edge(
        self, ops: list[Operation], weights: Sequence[float], change: EdgeChange, cycle: int
    ) -> list[Any]:
        """[candidates, scores, [pruned, score]…, [child, parent, morphism, …]…]."""
        if len(ops) != len(weights):
            raise FormatError([f"cycle {cycle}: an edge needs one weight for each candidate"])
        numbers = [self._number(op) for op in ops]
        pruned = [[self._number(gone.op), rounded(gone.probability)] for gone in change.pruned]
        added = [
            [
                *(self._number(child.op), self._number(child.parent)),
                self._morphisms.setdefault(child.morphism, len(self._morphisms)),
                *(rounded(child.parent_probability), int(child.returned)),
            ]
            for child in change.added
        ]
        scores = [rounded(value) for value in self._scores(weights)] if weights else []
        return [numbers, scores, pruned, added]

    def _add_certainty(self, evidence: Evidence | None) -> None:
        if evidence is None or not evidence.decisions:
            self.supported.append(None)
            self.contradicted.append(None)
        else:
            self.supported.append(rounded(evidence.supported / evidence.decisions))
            self.contradicted.append(rounded(evidence.contradicted / evidence.decisions))

    def _set(self, role: Role, edges: Edges) -> None:
        """The pools that the next cycle trains, and what they are like."""
        candidates = [op for pool in edges for op in pool]
        self._now[role] = edges
        self._seen[role].update(candidates)
        types = statistics.type_shares(candidates) if candidates else {}
        kernels = statistics.kernel_shares(candidates)
        similarity = statistics.mean(map(statistics.pool_similarity, edges))
        self.pools[role].append(
            {
                "types": {name: rounded(share) for name, share in types.items()},
                "kernels": {str(size): rounded(share) for size, share in kernels.items()},
                "similarity": rounded(similarity),
                "discovered": len(self._seen[role]),
            }
        )

    def _number(self, op: Operation) -> int:
        return self._ops.setdefault(op, len(self._ops))

    @property
    def colors(self) -> dict[str, str]:
        """The colour of every category that the page shows, in their order."""
        held = {op.category for ops in self._seen.values() for op in ops}
        shown = [name for name in CATEGORIES if name in ALWAYS_SHOWN or name in held]
        return {name: color_of(name).name for name in shown}

    def data(self) -> dict[str, Any]:
        now = {
            role: [[self._number(op) for op in pool] for pool in edges]
            for role, edges in self._now.items()
        }
        return {
            "steps": self._steps,
            "now": now,
            "positions": _positions(max(map(len, now.values()), default=0), self._shape),
            "operations": [op.label for op in self._ops],
            "types": [op.category for op in self._ops],
            "colors": self.colors,
            "morphisms": list(self._morphisms),
        }


def _evidence(
    evidence: Evidence | None, role: Role, edges: Edges, cycle: int
) -> list[dict[str, Any] | None]:
    """For each edge, what each candidate is worth (mean, error) and how sure the decision is."""
    if evidence is None:
        return [None] * len(edges)
    removal, saliency = evidence.removal.get(role, []), evidence.saliency.get(role, [])
    decisions = evidence.edges.get(role, [])
    uncompared = evidence.uncompared.get(role, [])
    sizes = list(map(len, edges))
    kinds = {"removal": removal, "saliency": saliency, "paths": evidence.paths.get(role, [])}
    kinds = {name: worths for name, worths in kinds.items() if worths}
    measured = [[len(edge.mean) for edge in worths] for worths in kinds.values()]
    errors = [[len(edge.error) for edge in worths] for worths in kinds.values()]
    if any(lengths != sizes for lengths in [*measured, *errors]) or len(decisions) != len(sizes):
        raise FormatError([f"cycle {cycle}: the evidence fits the {role} cell's pools no more"])
    rows: list[dict[str, Any] | None] = []
    for number, decision in enumerate(decisions):
        edge: dict[str, Any] = {
            name: [
                None if pair[0] is None else list(map(rounded, pair))
                for pair in zip(worths[number].mean, worths[number].error, strict=True)
            ]
            for name, worths in kinds.items()
        }
        if decision is not None:
            numbers = map(rounded, (decision.difference, decision.error, decision.p))
            edge["decision"] = [decision.kept, decision.pruned, *numbers]
        if number < len(uncompared) and uncompared[number] is not None:
            edge["uncompared"] = uncompared[number]
        rows.append(edge)
    return rows


def _operation(label: str) -> Operation:
    try:
        return from_label(label)
    except ValueError as error:
        raise FormatError([str(error)]) from None


def _after(ops: Iterable[Operation], change: EdgeChange) -> list[Operation]:
    pruned = {candidate.op for candidate in change.pruned}
    return [op for op in ops if op not in pruned] + [child.op for child in change.added]


def _initial(nodes: int | None, labels: Sequence[Any], shape: CellShape) -> Edges:
    """The pools of the first cycle, if the config has them; its record has them in any case."""
    if nodes is None or not 1 <= nodes <= MAX_NODES:
        return []
    try:
        ops = [from_label(label) for label in labels if isinstance(label, str)]
    except ValueError:
        return []
    return [list(ops) for _ in edge_positions(nodes, shape)] if ops else []


def _positions(edges: int, shape: CellShape) -> list[tuple[int, int]]:
    """(node's state, input) of every edge; none for a number that no cell has."""
    cells = (edge_positions(nodes, shape) for nodes in range(1, MAX_NODES + 1))
    return next((positions for positions in cells if len(positions) == edges), [])

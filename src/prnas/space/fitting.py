"""The best genotype within limits on its final network, and what it gives up for them.

The best is that of the greatest total strength: the sum, over all edges that nodes keep, of the
strength of the operation that the edge keeps. Without limits that is what `derive` chooses, edge by
edge. Both cells share a limit, so that with one they are chosen together, exactly (`best_fit`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from math import fsum
from random import Random
from typing import Any

from prnas.space.best_fit import Choice, Group, Option, best_fit, least_cost
from prnas.space.change import CellChange, Change
from prnas.space.costs import KINDS, Cost, CostKind, Costs, shown
from prnas.space.derivation import Nodes, RankedEdge, made_cell, ranked_edges, strongest
from prnas.space.genotype import Cell, Genotype
from prnas.space.operations import Operation, Skip
from prnas.space.pools import CellWeights, Pools
from prnas.space.scores import Scores, softmax
from prnas.space.shape import Output, Role
from prnas.space.worth import EdgeWorth

Amounts = tuple[int, ...]
_UNITS = 1 << 40  # The greatest strength as a whole number: sums of whole numbers are exact.


@dataclass(frozen=True, slots=True)
class NetworkLimits:
    """The most that a final network may cost of each kind; latency in nanoseconds."""

    params: int | None = None
    macs: int | None = None
    latency: int | None = None

    def __bool__(self) -> bool:
        return bool(self.kinds)

    @property
    def kinds(self) -> tuple[CostKind, ...]:
        return tuple(kind for kind in KINDS if self.of(kind) is not None)

    def of(self, kind: CostKind) -> int | None:
        return {"params": self.params, "macs": self.macs, "latency": self.latency}[kind]

    def exceeded(self, cost: Cost) -> tuple[CostKind, ...]:
        """The kinds of which this is too much."""
        return tuple(kind for kind in self.kinds if cost.of(kind) > (self.of(kind) or 0))


@dataclass(frozen=True, slots=True)
class GivenUp:
    """An edge that is another one: its operation, or whether it is there at all (`None`: not)."""

    role: Role
    node: int
    input: int
    own: str | None
    fitting: str | None


@dataclass(frozen=True, slots=True)
class Fit:
    """The costs and strengths of two genotypes: the one taken under limits, and the unlimited one.

    `own` is what the search would have chosen, with its cost and total strength; `cost` and
    `strength` are those of the genotype that was taken. `smallest` has, where nothing fits, the
    least possible cost of each kind, each on its own.
    """

    limits: NetworkLimits
    fits: bool
    own: Genotype
    own_cost: Cost
    own_strength: float
    cost: Cost
    strength: float
    given_up: tuple[GivenUp, ...] = ()
    smallest: Cost | None = None

    def to_json(self) -> dict[str, Any]:
        """The fit as the record of a genotype has it."""
        smallest = None if self.smallest is None else asdict(self.smallest)
        return {
            "limits": {kind: self.limits.of(kind) for kind in self.limits.kinds},
            "fits": self.fits,
            "cost": asdict(self.cost),
            "strength": self.strength,
            "own": self.own.to_json(),
            "own_cost": asdict(self.own_cost),
            "own_strength": self.own_strength,
            "given_up": [asdict(change) for change in self.given_up],
            **({} if smallest is None else {"smallest": smallest}),
        }


def derive_fitting(
    pools: Pools,
    weights: Mapping[Role, CellWeights],
    generator: Random,
    costs: Costs,
    limits: NetworkLimits,
    max_skips: Mapping[Role, int] | None = None,
    scores: Scores = softmax,
    output: Output = "concat",
    worths: Mapping[Role, Sequence[EdgeWorth]] | None = None,
    edge_weights: Mapping[Role, Sequence[float]] | None = None,
) -> tuple[Genotype, Change, Fit]:
    """As `derive`, but the best genotype whose network is within the limits.

    If the search's own is, it stays; if none is, it stays too, and the fit says so.
    """
    most = max_skips or {}
    edges: dict[Role, list[RankedEdge]] = {}
    nodes: dict[Role, Nodes] = {}
    ranked: dict[Role, list[RankedEdge]] = {}
    for role in pools.roles:
        measured = worths[role] if worths else None
        weighed = edge_weights[role] if edge_weights else None
        rules = (scores, measured, weighed)
        ranked[role] = ranked_edges(pools.cell(role), weights[role], generator, *rules)
        edges[role], nodes[role] = strongest(pools.cell(role), ranked[role], most.get(role))
    own, change = _made(pools, edges, nodes, output)
    own_cost, own_strength = costs.total(own), total_strength(own, ranked)
    unlimited = Fit(limits, True, own, own_cost, own_strength, own_cost, own_strength)
    if not limits.exceeded(own_cost):
        return own, change, unlimited
    problem = _Problem(pools, ranked, costs, limits, most)
    choice = problem.best()
    if choice is None:
        return own, change, replace(unlimited, fits=False, smallest=problem.smallest())
    edges, nodes = problem.chosen(choice)
    genotype, change = _made(pools, edges, nodes, output)
    fit = replace(
        unlimited,
        cost=costs.total(genotype),
        strength=total_strength(genotype, ranked),
        given_up=_given_up(own, genotype),
    )
    return genotype, change, fit


class _Problem:
    """The choice of all cells as groups of slots: nodes of edges, with an option an operation."""

    def __init__(
        self,
        pools: Pools,
        ranked: Mapping[Role, Sequence[RankedEdge]],
        costs: Costs,
        limits: NetworkLimits,
        max_skips: Mapping[Role, int],
    ) -> None:
        self.pools, self.ranked, self.costs, self.limits = pools, ranked, costs, limits
        self.nodes: list[tuple[Role, list[RankedEdge], int]] = [
            (role, [edge for edge in ranked[role] if edge.state == state], shape.num_edges(state))
            for role in pools.roles
            for shape in (pools.shape,)
            for state in shape.nodes(pools.cell(role).num_nodes)
        ]
        # The limit of skips is at least the number that the pools leave no choice about.
        self.max_skips: dict[Role, int] = {
            role: max(most, self._least_skips(role)) for role, most in max_skips.items()
        }

    def _least_skips(self, bounded: Role) -> int:
        def amounts(role: Role, edge: RankedEdge, op: Operation) -> Amounts:
            return (_skips(bounded, role, edge, op),)

        return least_cost(self._groups(amounts), 0)

    def best(self) -> Choice | None:
        """The choice of the greatest strength within the limits."""
        kinds, around = self.limits.kinds, self.costs.around
        bounds = [(self.limits.of(kind) or 0) - around.of(kind) for kind in kinds]
        edges = [edge for _, edges, _ in self.nodes for edge in edges]
        largest = max(abs(value) for edge in edges for value in strengths(edge))
        unit = _UNITS / (largest or 1.0)
        return best_fit(
            self._groups(self._amounts(kinds), unit), (*bounds, *self.max_skips.values())
        )

    def smallest(self) -> Cost:
        """The least cost of each kind, on its own, with no more skips than are allowed."""
        least: dict[CostKind, int] = {}
        for kind in self.costs.kinds:
            groups = self._groups(self._amounts((kind,)))
            everything = sum(
                option.costs[0] for group in groups for slot in group.slots for option in slot
            )
            choice = best_fit(groups, (everything, *self.max_skips.values()))
            assert choice is not None  # the bounds on skips can be kept
            least[kind] = self.costs.around.of(kind) + sum(
                group.slots[slot][option].costs[0]
                for group, options in zip(groups, choice, strict=True)
                for slot, option in enumerate(options)
                if option is not None
            )
        return Cost(**least)

    def chosen(self, choice: Choice) -> tuple[dict[Role, list[RankedEdge]], dict[Role, Nodes]]:
        """The edges of each cell, those that were taken with their operation first; and nodes."""
        taken: dict[tuple[Role, int, int], RankedEdge] = {}
        nodes: dict[Role, Nodes] = {role: [] for role in self.pools.roles}
        for (role, edges, _), options in zip(self.nodes, choice, strict=True):
            nodes[role].append([])
            for edge, option in zip(edges, options, strict=True):
                if option is not None:
                    decided = replace(edge, ranked=(edge.ranked[option],))
                    taken[role, edge.state, edge.input] = decided
                    nodes[role][-1].append(decided)
        edges_of: dict[Role, list[RankedEdge]] = {
            role: [taken.get((role, edge.state, edge.input), edge) for edge in edges]
            for role, edges in self.ranked.items()
        }
        return edges_of, nodes

    def _amounts(
        self, kinds: Sequence[CostKind]
    ) -> Callable[[Role, RankedEdge, Operation], Amounts]:
        """The costs of these kinds, and the skips that are bounded."""

        def amounts(role: Role, edge: RankedEdge, op: Operation) -> Amounts:
            cost = self.costs.of(role, edge.input, op)
            skips = (_skips(bounded, role, edge, op) for bounded in self.max_skips)
            return (*(cost.of(kind) for kind in kinds), *skips)

        return amounts

    def _groups(
        self, amounts: Callable[[Role, RankedEdge, Operation], Amounts], unit: float | None = None
    ) -> list[Group]:
        """Groups with strengths in these units as values, or else with the first amount saved."""
        groups: list[Group] = []
        for role, edges, number in self.nodes:
            slots: list[tuple[Option, ...]] = []
            for edge in edges:
                options: list[Option] = []
                for (op, _), strength in zip(edge.ranked, strengths(edge), strict=True):
                    costs = amounts(role, edge, op)
                    value = -costs[0] if unit is None else round(strength * unit)
                    options.append(Option(value, costs))
                slots.append(tuple(options))
            groups.append(Group(tuple(slots), number))
        return groups


def strengths(edge: RankedEdge) -> list[float]:
    """Strengths of an edge's candidates in their order: none exceeds one that is ranked before it.

    Candidates that were eliminated one by one are not ranked by their strengths alone.
    """
    return list(accumulate((strength for _, strength in edge.ranked), min))


def total_strength(genotype: Genotype, ranked: Mapping[Role, Sequence[RankedEdge]]) -> float:
    """The sum over all edges of a genotype of the strength of the operation that each keeps."""
    strength_of = {
        (role, edge.state, edge.input, op): strength
        for role, edges in ranked.items()
        for edge in edges
        for (op, _), strength in zip(edge.ranked, strengths(edge), strict=True)
    }
    return fsum(
        strength_of[role, state, edge.input, edge.op]
        for role in genotype.roles
        for state, edge in genotype.cell(role).edges
    )


def _skips(bounded: Role, role: Role, edge: RankedEdge, op: Operation) -> int:
    """Whether an operation counts as a skip of a cell."""
    return int(role == bounded and isinstance(op, Skip))


def _made(
    pools: Pools,
    edges: Mapping[Role, Sequence[RankedEdge]],
    nodes: Mapping[Role, Nodes],
    output: Output,
) -> tuple[Genotype, Change]:
    made: dict[Role, tuple[Cell, CellChange]] = {
        role: made_cell(pools.cell(role), edges[role], nodes[role], output) for role in pools.roles
    }
    return (
        Genotype.of({role: cell for role, (cell, _) in made.items()}),
        Change.of({role: change for role, (_, change) in made.items()}),
    )


def _given_up(own: Genotype, fitting: Genotype) -> tuple[GivenUp, ...]:
    """The edges in which two genotypes of the same search differ."""
    differences: list[GivenUp] = []
    for role in own.roles:
        before, after = (
            {(state, edge.input): edge.op.label for state, edge in genotype.cell(role).edges}
            for genotype in (own, fitting)
        )
        for edge in sorted({*before, *after}):
            if before.get(edge) != after.get(edge):
                differences.append(GivenUp(role, *edge, before.get(edge), after.get(edge)))
    return tuple(differences)


def in_short(
    limits: Mapping[CostKind, int], cost: Mapping[CostKind, int], fits: bool, given_up: int
) -> str:
    """'2.98 M parameters (limit: 3 M parameters); 4 edges given up for it'."""
    costs = [f"{shown(kind, cost[kind])} (limit: {shown(kind, limits[kind])})" for kind in limits]
    if not fits:
        return f"{', '.join(costs)}: nothing fits"
    edges = f"; {given_up} edge{'s' if given_up > 1 else ''} changed for it" if given_up else ""
    return ", ".join(costs) + edges


def in_words(fit: Fit) -> list[str]:
    """A summary of a fit for people, a sentence a line."""
    too_much = fit.limits.exceeded(fit.own_cost)
    if not too_much:
        costs = [shown(kind, fit.cost.of(kind)) for kind in fit.limits.kinds]
        return [f"the final network is within its limits: {', '.join(costs)}"]
    over = ", ".join(
        f"{shown(kind, fit.own_cost.of(kind))} (limit: {shown(kind, fit.limits.of(kind) or 0)})"
        for kind in too_much
    )
    if fit.smallest is not None:
        return [_nothing(fit, over)]
    size = ", ".join(shown(kind, fit.cost.of(kind)) for kind in fit.limits.kinds)
    share = f"{100 * fit.strength / fit.own_strength:.1f} %" if fit.own_strength > 0 else "part"
    lines = [
        f"the search's own cells make a network of {over}; the best that fit make one of {size}, "
        f"with {share} of the total strength ({fit.strength:.4g} of {fit.own_strength:.4g}). "
        "Given up:"
    ]
    return [*lines, *(_changed(change, fit.own.shape.inputs) for change in fit.given_up)]


def _nothing(fit: Fit, over: str) -> str:
    assert fit.smallest is not None
    never: list[CostKind] = [
        kind for kind in fit.limits.kinds if fit.smallest.of(kind) > (fit.limits.of(kind) or 0)
    ]
    why = (
        "the smallest network of the candidates that were left has "
        + ", ".join(shown(kind, fit.smallest.of(kind)) for kind in never)
        if never
        else "each limit alone could be kept ("
        + ", ".join(shown(kind, fit.smallest.of(kind)) for kind in fit.limits.kinds)
        + " at least), but not all together"
    )
    return (
        f"nothing fits: the cells that were found make a network of {over}, and {why}. They are "
        "written as the search's result all the same; for others, raise the limit, or search anew "
        "with architecture.cost or more candidates in the last cycle"
    )


def _changed(change: GivenUp, inputs: int) -> str:
    edge = f"{change.role} cell, {_state(change.input, inputs)} to {_state(change.node, inputs)}"
    if change.own is None:
        return f"  {edge}: {change.fitting}, in place of another input"
    if change.fitting is None:
        return f"  {edge}: nothing in place of {change.own}"
    return f"  {edge}: {change.fitting} in place of {change.own}"


def _state(state: int, inputs: int) -> str:
    """The name of a state as in pictures: the cells before, then the nodes."""
    return f"c(k-{inputs - state})" if state < inputs else f"B{state - inputs + 1}"

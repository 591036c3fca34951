"""The end of a cycle: what candidates are worth by measurement, and how sure the decisions are."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from prnas.config.architecture import RELAXATIONS
from prnas.config.choices import Scoring
from prnas.nets.removal import CandidateIndex, pass_costs
from prnas.runs.preparation import torch_generator
from prnas.runs.records import EdgeDecision, Evidence, InputDecision, Uncompared, Worth
from prnas.searching.budget import budget, cycle_work
from prnas.searching.cell_worth import CellJudge
from prnas.searching.cycle_end import Decision
from prnas.searching.measuring import Measuring, Without
from prnas.searching.path_worth import PathJudge
from prnas.space.evidence import Estimate, difference, estimate
from prnas.space.operations import Operation, Zero
from prnas.space.pools import CellWeights, Pools
from prnas.space.shape import Role
from prnas.space.worth import (
    Comparison,
    EdgeWorth,
    Elimination,
    blended,
    last_and_first,
    one_shot,
)

if TYPE_CHECKING:
    from prnas.searching.search import Search

LEAST_HALF = 8  # images of the architecture half without which nothing is measured
EdgeKey = tuple[Role, int]
_ALL: Without = frozenset()  # nothing is left out


class Judging:
    """Measures candidates at the end of a cycle: first to decide, then to tell how sure that is."""

    def __init__(
        self,
        search: "Search",
        pools: Pools,
        weights: Mapping[Role, CellWeights],
        edge_weights: Mapping[Role, Sequence[float]] | None = None,
    ) -> None:
        config, number = search.config, search.state.position.cycle
        cycle = config.schedule.cycles[number]
        self.search, self.config, self.pools = search, config, pools
        self.edge_weights = edge_weights
        self.last = number == len(config.schedule.cycles) - 1
        self.no_zero = self.last and pools.shape.reads == "two"  # Genotypes have no zero there.
        self.keep = 1 if self.last else cycle.survivors
        self.scoring: Scoring = config.architecture.scoring
        scores = RELAXATIONS[config.architecture.relaxation]
        self.scores = {
            (role, i): scores(edge) for role in pools.roles for i, edge in enumerate(weights[role])
        }
        self.eliminations: dict[EdgeKey, Elimination] = {}
        if self.scoring in ("removal", "blend"):
            self.eliminations = {
                (role, i): Elimination(
                    pool.candidates,
                    self.keep,
                    weights=self.scores[role, i] if self.scoring == "blend" else None,
                    protect_conv=not self.last and cycle.protect_conv,
                    no_zero=self.no_zero,
                    decided=search.state.supernet.decided.get((role, i)),
                )
                for role in pools.roles
                for i, pool in enumerate(pools.cell(role).edges)
            }
        architecture = search.indices["architecture"]
        supernet, (_, height, width) = search.state.supernet, search.data.shape
        supernet.progress = search.progress
        costs = pass_costs(supernet, (height, width))
        passes = [self._passes(key) * costs.shares[key[0]][key[1]] for key in self._keys]
        work = cycle_work(config, number, search.epoch_images, len(architecture))
        every = self.last or self.scoring in ("removal", "blend", "paths")
        self.budget = budget(config, work, passes, costs.overhead, len(architecture), every)
        generator = torch_generator(config.seed, "evidence", number)
        order = architecture[torch.randperm(len(architecture), generator=generator)]
        edges = torch.randperm(len(passes), generator=generator)[: self.budget.edges]
        self.tested = {self._keys[index] for index in edges.tolist()}
        removal, saliency = self.budget.removal_images, self.budget.saliency_images
        self.measuring = Measuring(search, order, removal, saliency)
        by_cells = config.judges_by_cells
        self.paths = CellJudge(search, pools) if by_cells else PathJudge(search, pools, self.last)
        self.saliency: dict[Role, list[list[tuple[float, ...]]]] = {
            role: [] for role in pools.roles
        }
        if self.budget.saliency_batches and self.scoring != "paths":
            self.saliency = self.measuring.saliency(self.budget.saliency_batch)
        self.worths = self._worths()

    def _passes(self, key: EdgeKey) -> int:
        """The number of passes that an edge takes."""
        if self.eliminations:
            return self.eliminations[key].num_passes
        pruned = len(self._candidates(key)) > self.keep
        return 2 * pruned + 2 * self.last

    def _worths(self) -> dict[Role, list[EdgeWorth]] | None:
        """The worth that decides, if it is not the architecture weights."""
        if self.scoring == "weights":
            return None
        if self.scoring == "paths":
            return self.paths.worths(self.measuring)
        if self.scoring == "saliency":
            return {role: list(map(one_shot, edges)) for role, edges in self.saliency.items()}
        while asking := {
            key: sets
            for key, elimination in self.eliminations.items()
            if (sets := elimination.ask())
        }:
            wanted = [_without(key, removed) for key, sets in asking.items() for removed in sets]
            losses = self.measuring.losses(wanted)
            for key, sets in asking.items():
                self.eliminations[key].tell(
                    {removed: losses[_without(key, removed)] for removed in sets}
                )
        blend = self.scoring == "blend"
        results = {
            key: elimination.result(self.scores[key] if blend else None)
            for key, elimination in self.eliminations.items()
        }
        cells: dict[Role, list[EdgeWorth]] = {
            role: [results[key] for key in results if key[0] == role] for role in self.pools.roles
        }
        return {role: blended(cell) for role, cell in cells.items()} if blend else cells

    def strengths(self) -> list[Tensor]:
        """The numbers that decide, which all processes must agree about."""
        worths = (self.worths or {}).values()
        values = [value for edges in worths for edge in edges for value in edge.strengths]
        return [torch.tensor(values, dtype=torch.float64)]

    def evidence(self, decision: Decision) -> Evidence:
        """The evidence for a decision: losses without survivors and without what was pruned."""
        compared = self._compared_edges(decision)
        inputs = self._compared_inputs(decision) if decision.genotype else {}
        gaps = [comparison.difference for comparison in compared.values()]
        gaps += [
            comparison.difference for nodes in inputs.values() for comparison in nodes.values()
        ]
        sure = [gap.mean for gap in gaps if gap.beyond_chance]
        by_paths = (self.worths or {}).items() if self.scoring == "paths" else ()
        return Evidence(
            scoring=self.scoring,
            renormalise=self.config.architecture.renormalise,
            images=self.measuring.num_images,
            saliency_images=self.budget.saliency_images if any(self.saliency.values()) else 0,
            passes=self.measuring.num_passes,
            share=_short(self.paths.share or self.budget.share),
            removal=self._removal(compared),
            saliency={
                role: [_worth([estimate(sample) for sample in edge]) for edge in edges]
                for role, edges in self.saliency.items()
            },
            path_groups=self.paths.num_groups,
            paths={role: [_worth(edge.estimates) for edge in edges] for role, edges in by_paths},
            edges=self._by_edge(
                {
                    key: EdgeDecision(
                        kept=self._candidates(key)[comparison.survivor].label,
                        pruned=self._candidates(key)[comparison.pruned].label,
                        **_numbers(comparison.difference),
                    )
                    for key, comparison in compared.items()
                }
            ),
            uncompared=self._uncompared(decision, compared),
            limited_by=None if self.scoring == "paths" else self.budget.limited_by,
            inputs={
                role: [
                    InputDecision(
                        node=node,
                        kept=comparison.survivor,
                        pruned=comparison.pruned,
                        **_numbers(comparison.difference),
                    )
                    for node, comparison in inputs.get(role, {}).items()
                ]
                for role in self.pools.roles
            },
            decisions=len(gaps),
            supported=sum(mean > 0 for mean in sure),
            contradicted=sum(mean < 0 for mean in sure),
        )

    def _compared_edges(self, decision: Decision) -> dict[EdgeKey, Comparison]:
        """The last survivor against the first pruned, on every edge where something was decided."""
        if self.eliminations:
            comparisons = {
                key: elimination.comparison for key, elimination in self.eliminations.items()
            }
            return {
                key: comparison
                for key, comparison in comparisons.items()
                if comparison is not None and self._was_taken(decision, key, comparison)
            }
        pairs: dict[EdgeKey, tuple[int, int]] = {}
        for key in sorted(self.tested, key=self._keys.index):
            change = decision.change.cell(key[0]).edges[key[1]]
            gone = {pruned.op for pruned in change.pruned}
            scores = self._strengths_of(key)
            if pair := last_and_first(self._candidates(key), scores, gone, no_zero=self.no_zero):
                pairs[key] = pair
        if self.scoring == "paths":
            return {
                key: Comparison(*pair, self._gap_by_paths(key, *pair))
                for key, pair in pairs.items()
            }
        wanted = [_without(key, {index}) for key, pair in pairs.items() for index in pair]
        losses = self.measuring.losses([_ALL, *wanted])
        return {
            key: Comparison(
                survivor,
                pruned,
                difference(losses[_without(key, {survivor})], losses[_without(key, {pruned})]),
            )
            for key, (survivor, pruned) in pairs.items()
        }

    def _was_taken(self, decision: Decision, key: EdgeKey, comparison: Comparison) -> bool:
        """Whether the edge was decided as its elimination ended, and not by a bound on skips."""
        gone = {pruned.op for pruned in decision.change.cell(key[0]).edges[key[1]].pruned}
        candidates = self._candidates(key)
        return candidates[comparison.survivor] not in gone and candidates[comparison.pruned] in gone

    def _uncompared(
        self, decision: Decision, compared: Mapping[EdgeKey, Comparison]
    ) -> dict[Role, list[Uncompared | None]]:
        """Why an edge that lost a candidate has no comparison; `None` for all others."""

        def reason(key: EdgeKey) -> Uncompared | None:
            pruned = decision.change.cell(key[0]).edges[key[1]].pruned
            lost = [each.op for each in pruned if not (self.no_zero and isinstance(each.op, Zero))]
            if key in compared or not lost:
                return None
            measured = key in self.eliminations or key in self.tested
            return "rule" if measured else "unmeasured"

        return self._by_edge({key: reason(key) for key in self._keys})

    def _gap_by_paths(self, key: EdgeKey, survivor: int, pruned: int) -> Estimate:
        """The gain of paths with the survivor, sampled over groups of paths."""
        assert self.worths is not None
        samples = self.worths[key[0]][key[1]].samples
        return difference(samples[survivor], samples[pruned])

    def _compared_inputs(self, decision: Decision) -> dict[Role, dict[int, Comparison]]:
        """For each node, the last input that survived against the first that did not."""
        assert decision.genotype is not None
        pairs: dict[Role, dict[int, tuple[EdgeKey, EdgeKey]]] = {
            role: {} for role in self.pools.roles
        }
        survivors: dict[EdgeKey, int] = {}
        for key in self._keys:
            (op,) = decision.pools.cell(key[0]).edges[key[1]].candidates
            survivors[key] = self._candidates(key).index(op)
        for role in self.pools.roles:
            chosen = {(state, edge.input) for state, edge in decision.genotype.cell(role).edges}
            positions = self.pools.cell(role).positions
            for state in sorted({state for state, _ in positions}):
                keys: list[EdgeKey] = [
                    (role, i) for i, position in enumerate(positions) if position[0] == state
                ]

                def strength(key: EdgeKey) -> float:
                    return self._strengths_of(key)[survivors[key]]

                stay = [key for key in keys if positions[key[1]] in chosen]
                rest = [key for key in keys if key not in stay]
                if rest:
                    first = max(rest, key=strength)
                    rivals = [key for key in stay if strength(key) >= strength(first)]
                    if rivals:
                        pairs[role][state] = min(rivals, key=strength), first

        def without(key: EdgeKey) -> tuple[Without, Without]:
            """All candidates of an edge, and all but its survivor, to be left out."""
            everything = set(range(len(self._candidates(key))))
            return _without(key, everything), _without(key, everything - {survivors[key]})

        both = [key for nodes in pairs.values() for pair in nodes.values() for key in pair]
        by_paths = self.scoring == "paths"
        losses = (
            {}
            if by_paths
            else self.measuring.losses([removed for key in both for removed in without(key)])
        )

        def worth(key: EdgeKey) -> list[float]:
            if by_paths and self.worths is not None:  # worth of the edge and of its survivor
                contrasts = self.worths[key[0]][key[1]].samples[survivors[key]]
                return [a + b for a, b in zip(self.paths.rises[key], contrasts, strict=True)]
            empty, full = without(key)
            return [a - b for a, b in zip(losses[empty], losses[full], strict=True)]

        comparisons: dict[Role, dict[int, Comparison]] = {}
        for role, nodes in pairs.items():
            positions = self.pools.cell(role).positions
            comparisons[role] = {}
            for state, (stays, goes) in nodes.items():
                gap = difference(worth(stays), worth(goes))
                comparisons[role][state] = Comparison(
                    positions[stays[1]][1], positions[goes[1]][1], gap
                )
        return comparisons

    def _removal(self, compared: Mapping[EdgeKey, Comparison]) -> dict[Role, list[Worth]]:
        """The worth by removal, of all candidates or of those that were compared."""
        if self.scoring == "paths":
            return {role: [] for role in self.pools.roles}
        if self.eliminations:
            return self._by_edge(
                {
                    key: _worth(elimination.result().estimates)
                    for key, elimination in self.eliminations.items()
                }
            )
        wanted = [
            _without(key, {i})
            for key, comparison in compared.items()
            for i in (comparison.survivor, comparison.pruned)
        ]
        losses = self.measuring.losses([_ALL, *wanted])
        worths: dict[EdgeKey, Worth] = {}
        for key in self._keys:
            rises: list[Estimate | None] = [None] * len(self._candidates(key))
            if key in compared:
                for index in (compared[key].survivor, compared[key].pruned):
                    rises[index] = difference(losses[_without(key, {index})], losses[_ALL])
            worths[key] = _worth(rises)
        return self._by_edge(worths)

    @property
    def _keys(self) -> list[EdgeKey]:
        return [
            (role, i) for role in self.pools.roles for i in range(len(self.pools.cell(role).edges))
        ]

    def _candidates(self, key: EdgeKey) -> tuple[Operation, ...]:
        return self.pools.cell(key[0]).edges[key[1]].candidates

    def _strengths_of(self, key: EdgeKey) -> Sequence[float]:
        """The numbers that rank edges, and candidates that were not eliminated."""
        if self.worths is None:
            factor = 1.0 if self.edge_weights is None else self.edge_weights[key[0]][key[1]]
            return [score * factor for score in self.scores[key]]
        return self.worths[key[0]][key[1]].strengths

    def _by_edge(self, measured: Mapping[EdgeKey, Any]) -> dict[Role, list[Any]]:
        """The values of all edges, by cell; `None` where nothing was measured."""
        return {
            role: [measured.get(key) for key in self._keys if key[0] == role]
            for role in self.pools.roles
        }


def _without(key: EdgeKey, indices: Iterable[int]) -> Without:
    return frozenset(CandidateIndex(*key, index) for index in indices)


def _worth(rises: Sequence[Estimate | None]) -> Worth:
    return Worth(
        mean=[None if rise is None else _short(rise.mean) for rise in rises],
        error=[None if rise is None else _short(rise.error) for rise in rises],
    )


def _numbers(gap: Estimate) -> dict[str, float]:
    return {"difference": _short(gap.mean), "error": _short(gap.error), "p": _short(gap.p)}


def _short(number: float) -> float:
    """The number to six significant digits."""
    return float(f"{number:.6g}")

"""The measured worth of candidates: by how much the loss rises when one is left out.

It decides in place of architecture weights, where a config says so. A sample of worth is a rise for
each image (by removal) or for each batch (by saliency), the same ones for all candidates, so that
differences are paired.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from statistics import fmean, pstdev

from prnas.space.evidence import Estimate, difference, estimate
from prnas.space.operations import Convolution, Operation, Zero
from prnas.space.scores import as_probabilities, softmax

Removed = frozenset[int]  # indices of the candidates of an edge that are left out
Losses = Mapping[Removed, Sequence[float]]  # loss of each image without them


@dataclass(frozen=True, slots=True)
class EdgeWorth:
    """The measured worth of an edge's candidates, by which they are pruned and drawn as parents.

    `order` has their indices, best first. `strengths` compare candidates of different edges, for
    the choice of a node's inputs. `weighed` are scores by architecture weights that count half.
    """

    samples: tuple[tuple[float, ...], ...]
    order: tuple[int, ...]
    strengths: tuple[float, ...]
    weighed: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        number = len(self.samples)
        if sorted(self.order) != list(range(number)) or len(self.strengths) != number:
            raise ValueError("worth needs a rank and a strength for each candidate")

    @property
    def estimates(self) -> list[Estimate]:
        return [estimate(sample) for sample in self.samples]

    def probabilities(self, indices: Sequence[int]) -> list[float]:
        """The probabilities of these candidates to be drawn as parents; they sum up to 1."""
        measured = worth_probabilities([self.samples[index] for index in indices])
        if self.weighed is None:
            return measured
        weighed = as_probabilities([self.weighed[index] for index in indices])
        return [(a + b) / 2 for a, b in zip(measured, weighed, strict=True)]


def worth_probabilities(samples: Sequence[Sequence[float]]) -> list[float]:
    """Probabilities from samples of worth: equal where the differences are no more than noise.

    A softmax of the worth in units of its spread over the candidates, shrunk by the part of that
    spread which the error of measurement explains (as James and Stein shrink means). So clear
    differences count by factors of e or so, whatever their size, and none that chance made.
    """
    number = len(samples)
    if number == 1:
        return [1.0]
    centre = [fsum(column) / number for column in zip(*samples, strict=True)]
    contrasts = [difference(sample, centre) for sample in samples]
    spread = fsum(contrast.mean**2 for contrast in contrasts) / (number - 1)
    noise = fsum(contrast.error**2 for contrast in contrasts) / (number - 1)
    if contrasts[0].number < 2 or spread <= noise:
        return [1 / number] * number
    scale = (1 - noise / spread) / sqrt(spread)
    return softmax([contrast.mean * scale for contrast in contrasts])


@dataclass(frozen=True, slots=True)
class Comparison:
    """A decision: by how much the worth of the last survivor exceeds that of the first pruned."""

    survivor: int
    pruned: int
    difference: Estimate


class Elimination:
    """Backward elimination on one edge: the least missed leaves, then the others are measured anew.

    So of two candidates that can stand in for each other, one leaves and the other, now missed,
    stays; ranked once, both would leave. It measures nothing itself: `ask` says
    without which sets of candidates losses are needed next, and `tell` takes them. In the end each
    survivor was measured without those that left.

    With `weights`, the rank by these counts as much as the rank by worth. `protect_conv` keeps the
    last convolution, `no_zero` removes 'zero' first, unmeasured.
    """

    def __init__(
        self,
        operations: Sequence[Operation],
        keep: int,
        *,
        weights: Sequence[float] | None = None,
        protect_conv: bool = False,
        no_zero: bool = False,
    ) -> None:
        self.operations, self.weights, self.protect_conv = operations, weights, protect_conv
        self.keep = max(keep, 1)
        self.left = list(range(len(operations)))
        self.gone: list[int] = []
        self.samples: dict[int, tuple[float, ...]] = {}
        self.comparison: Comparison | None = None  # comparison of the last candidate that left
        self.done = False
        if no_zero:
            zeros = [index for index in self.left if isinstance(operations[index], Zero)]
            self.gone = zeros[: len(operations) - 1]
            self.left = [index for index in self.left if index not in self.gone]

    @property
    def num_passes(self) -> int:
        """The number of sets that `ask` will return, apart from the empty one."""
        number = len(self.left)
        return sum(range(min(self.keep, number), number + 1)) + bool(self.gone)

    def ask(self) -> list[Removed]:
        """The sets of candidates whose losses it needs next; none when it is done."""
        if self.done:
            return []
        gone = frozenset(self.gone)
        return [gone, *(gone | {index} for index in self.left)]

    def tell(self, losses: Losses) -> None:
        """Take the losses without the sets of `ask`, image by image."""
        gone = frozenset(self.gone)
        before = losses[gone]
        for index in self.left:
            without = losses[gone | {index}]
            self.samples[index] = tuple(a - b for a, b in zip(without, before, strict=True))
        if len(self.left) <= self.keep:
            self.done = True
            return
        ranked = self._ranked(self._removable())
        least = ranked[-1]
        self.comparison = None
        if len(ranked) > 1:
            next_least = ranked[-2]
            gap = difference(self.samples[next_least], self.samples[least])
            self.comparison = Comparison(next_least, least, gap)
        self.left.remove(least)
        self.gone.append(least)

    def _removable(self) -> list[int]:
        convs = [index for index in self.left if isinstance(self.operations[index], Convolution)]
        protected = convs if self.protect_conv and len(convs) == 1 else []
        return [index for index in self.left if index not in protected]

    def _ranked(self, indices: Collection[int]) -> list[int]:
        """Best first, by what was measured last and, if they count, by weights."""
        worth = {index: fmean(self.samples[index]) for index in indices}
        by_worth = sorted(indices, key=lambda index: (-worth[index], index))
        if self.weights is None:
            return by_worth
        weights = self.weights
        by_weight = sorted(indices, key=lambda index: (-weights[index], index))
        ranks = {index: by_worth.index(index) + by_weight.index(index) for index in indices}
        return sorted(by_worth, key=lambda index: ranks[index])

    def result(self, weighed: Sequence[float] | None = None) -> EdgeWorth:
        """The worth of all candidates: of those that left, when they did."""
        order = (*self._ranked(self.left), *reversed(self.gone))
        some = self.samples[self.left[0]]
        nothing = (0.0,) * len(some)  # a 'zero' that was not measured
        samples = tuple(self.samples.get(index, nothing) for index in range(len(self.operations)))
        strengths = tuple(map(fmean, samples))
        return EdgeWorth(samples, order, strengths, None if weighed is None else tuple(weighed))


def one_shot(samples: Sequence[Sequence[float]]) -> EdgeWorth:
    """The worth of an edge's candidates that were all measured once, beside all others."""
    means = list(map(fmean, samples))
    order = sorted(range(len(means)), key=lambda index: (-means[index], index))
    return EdgeWorth(tuple(map(tuple, samples)), tuple(order), tuple(means))


def blended(edges: Sequence[EdgeWorth]) -> list[EdgeWorth]:
    """Edges of a cell whose strengths are by worth and weights alike.

    Each in units of its deviation over all candidates of the cell.
    """

    def unit(values: Sequence[float]) -> float:
        return pstdev(values) or 1.0

    assert all(edge.weighed is not None for edge in edges)
    worth_unit = unit([value for edge in edges for value in edge.strengths])
    score_unit = unit([value for edge in edges for value in edge.weighed or ()])
    return [
        EdgeWorth(
            edge.samples,
            edge.order,
            tuple(
                worth / worth_unit + score / score_unit
                for worth, score in zip(edge.strengths, edge.weighed or (), strict=True)
            ),
            edge.weighed,
        )
        for edge in edges
    ]


def last_and_first(
    operations: Sequence[Operation],
    scores: Sequence[float],
    pruned: Collection[Operation],
    *,
    no_zero: bool = False,
) -> tuple[int, int] | None:
    """The last candidate of an edge that survived, and the first that was pruned, by score.

    `None` if nothing was pruned for its score. One that stays by a rule in spite of its score does
    not count, nor, with `no_zero`, a 'zero' that goes by one.
    """
    gone = [
        index
        for index, op in enumerate(operations)
        if op in pruned and not (no_zero and isinstance(op, Zero))
    ]
    if not gone:
        return None
    first = max(gone, key=lambda index: scores[index])
    survivors = [
        index
        for index, op in enumerate(operations)
        if op not in pruned and scores[index] >= scores[first]
    ]
    return (min(survivors, key=lambda index: scores[index]), first) if survivors else None

"""The candidates of an edge and how they change: prune and replace decide, they do not act."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter
from random import Random
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from prnas.space.change import Added, EdgeChange, Pruned
from prnas.space.morphisms import MORPHISMS, Morphism, morphs
from prnas.space.operations import STRICT, Conv, Operation, OperationField, checked_tuple
from prnas.space.scores import Scores, as_probabilities, checked_scores, softmax
from prnas.space.setting import Limits


@dataclass(frozen=True, slots=True)
class Arrival:
    """How a candidate came to an edge: by a morphism of its parent, or with the initial pool."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    op: OperationField
    parent: OperationField | None = None
    morphism: str | None = None


_OP = attrgetter("op")


@dataclass(frozen=True, slots=True)
class EdgePool:
    """The candidates of one edge now, and every arrival so far in order."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    candidates: Annotated[tuple[OperationField, ...], Field(strict=False)]
    births: Annotated[tuple[Arrival, ...], Field(strict=False)]

    def __post_init__(self) -> None:
        object.__setattr__(self, "candidates", checked_tuple("candidates", self.candidates))
        object.__setattr__(self, "births", checked_tuple("births", self.births))
        if not self.candidates:
            raise ValueError("a pool holds at least one candidate")
        if len(set(self.candidates)) < len(self.candidates):
            raise ValueError("a pool holds no candidate twice")
        if not self.ever_held.issuperset(self.candidates):
            raise ValueError("a pool's births must tell where each candidate came from")

    @classmethod
    def initial(cls, operations: Sequence[Operation]) -> "EdgePool":
        return cls(tuple(operations), tuple(Arrival(op) for op in operations))

    @property
    def ever_held(self) -> frozenset[Operation]:
        """Every operation that the edge has ever held."""
        return frozenset(map(_OP, self.births))

    def apply(self, change: EdgeChange) -> "EdgePool":
        """The pool after a change: survivors in their old order, then the children."""
        pruned = [one.op for one in change.pruned]
        stay = tuple(op for op in self.candidates if op not in pruned)
        if len(stay) + len(pruned) != len(self.candidates):
            raise ValueError("the change prunes what the pool does not hold")
        if any(one.parent not in stay for one in change.added):
            raise ValueError("the change adds a child whose parent did not stay")
        for one in change.added:
            morphism = MORPHISMS.get(one.morphism)
            if morphism is None or morphism.apply(one.parent) != one.op:
                raise ValueError(
                    f"'{one.op.label}' is no child of '{one.parent.label}' by '{one.morphism:.60}'"
                )
        born = tuple(Arrival(one.op, one.parent, one.morphism) for one in change.added)
        return EdgePool(stay + tuple(one.op for one in change.added), self.births + born)

    def _prune(
        self, weights: Sequence[float], keep: int, generator: Random, scores: Scores
    ) -> EdgeChange:
        """Keep the `keep` candidates of the highest scores, and the best convolution.

        The generator breaks ties.
        """
        if keep < 1:
            raise ValueError(f"a pool keeps at least one candidate, got {keep}")
        values = checked_scores(scores, weights, len(self.candidates))
        ranked = ranking(values, weights, generator)
        stay = ranked[:keep]
        convs = [place for place in ranked if isinstance(self.candidates[place], Conv)]
        if convs and convs[0] not in stay:
            stay[-1] = convs[0]
        return EdgeChange(
            pruned=tuple(
                Pruned(op, values[place])
                for place, op in enumerate(self.candidates)
                if place not in stay
            )
        )

    def _replace(
        self,
        parents: Sequence[Operation],
        weights: Sequence[float],
        number: int,
        limits: Limits,
        generator: Random,
        scores: Scores,
    ) -> EdgeChange:
        """Add up to `number` children of the parents, drawn one after the other.

        Each draw is exact: parent by its score, morphism uniform among its legal ones, given that
        the child is unknown to this edge; only when no unknown child is left, given that it is
        not in the pool now. If there is none either, the pool stays smaller.
        """
        probabilities = as_probabilities(checked_scores(scores, weights, len(parents)))
        children = _children(parents, probabilities, limits)
        ever_held, present = self.ever_held, set(parents)
        unknown = [one for one in children if one[2] not in ever_held]
        added: list[Added] = []
        for _ in range(number):
            open_ones, returned = unknown, False
            if not open_ones:
                open_ones = [one for one in children if one[2] not in present]
                returned = True
            if not open_ones:
                break
            (place, morphism, child, _), probability = _draw(open_ones, generator)
            added.append(
                Added(
                    op=child,
                    parent=parents[place],
                    morphism=morphism.name,
                    parent_probability=probabilities[place],
                    probability=probability,
                    returned=returned,
                )
            )
            unknown = [one for one in unknown if one[2] != child]
            present.add(child)
        return EdgeChange(added=tuple(added))

    def evolve(
        self,
        weights: Sequence[float],
        keep: int,
        number: int,
        limits: Limits,
        generator: Random,
        scores: Scores = softmax,
    ) -> tuple["EdgePool", EdgeChange]:
        """Prune, then replace: an edge's part in the end of a cycle."""
        pruned = self._prune(weights, keep, generator, scores)
        gone = [one.op for one in pruned.pruned]
        stay = [place for place, op in enumerate(self.candidates) if op not in gone]
        parents = [self.candidates[place] for place in stay]
        left = [weights[place] for place in stay]
        change = pruned.then(self._replace(parents, left, number, limits, generator, scores))
        return self.apply(change), change


def ranking(scores: Sequence[float], weights: Sequence[float], generator: Random) -> list[int]:
    """Indices from the highest score to the lowest, those of equal scores by weight.

    Candidates that are equal in both come in an order drawn by the generator.
    """
    indices = list(range(len(scores)))
    generator.shuffle(indices)
    return sorted(indices, key=lambda index: (-scores[index], -weights[index]))


Child = tuple[int, Morphism[Any], Operation, float]


def _children(
    parents: Sequence[Operation], probabilities: Sequence[float], limits: Limits
) -> list[Child]:
    """Every (parent's place, morphism, child), with its share: its probability if all are open."""
    found: list[Child] = []
    for place, (op, probability) in enumerate(zip(parents, probabilities, strict=True)):
        legal = morphs(op, limits)
        if legal:
            # A softmax may underflow to zero; the parent's legal children must not.
            share = max(probability / len(legal), 1e-300)
            found += [(place, morphism, child, share) for morphism, child in legal]
    return found


def _draw(children: Sequence[Child], generator: Random) -> tuple[Child, float]:
    """One of these children, by their shares, with the exact probability of that."""
    shares = [one[3] for one in children]
    *_, total = accumulate(shares)
    probabilities = [share / total for share in shares]
    point = generator.random()
    bounds = enumerate(accumulate(probabilities))
    place = next((place for place, bound in bounds if point < bound), len(children) - 1)
    return children[place], probabilities[place]

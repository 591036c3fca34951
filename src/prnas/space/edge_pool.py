"""The candidates of an edge and how they change: prune and replace decide, they do not act."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from random import Random
from typing import Annotated

from pydantic import Field

from prnas.space.change import Added, EdgeChange, Pruned
from prnas.space.checks import checked_tuple
from prnas.space.morphisms import MORPHISMS, morphs
from prnas.space.operations import Convolution, Operation, OperationField, Zero
from prnas.space.scores import Scores, as_probabilities, checked_scores, softmax
from prnas.space.setting import Limits
from prnas.space.worth import EdgeWorth


@dataclass(frozen=True, slots=True)
class Arrival:
    """The arrival of a candidate on an edge: by a morphism, or with the initial pool."""

    op: OperationField
    parent: OperationField | None = None
    morphism: str | None = None


@dataclass(frozen=True, slots=True)
class EdgePool:
    """The candidates of one edge now, and every arrival so far in order."""

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
            raise ValueError("a pool's births must say where each candidate came from")

    @classmethod
    def initial(cls, operations: Sequence[Operation]) -> "EdgePool":
        return cls(tuple(operations), tuple(Arrival(op) for op in operations))

    @property
    def ever_held(self) -> frozenset[Operation]:
        """Every operation that the edge has ever held."""
        return frozenset(birth.op for birth in self.births)

    def apply(self, change: EdgeChange) -> "EdgePool":
        """The pool after a change: survivors in their old order, then the children."""
        pruned = [candidate.op for candidate in change.pruned]
        survivors = tuple(op for op in self.candidates if op not in pruned)
        if len(survivors) + len(pruned) != len(self.candidates):
            raise ValueError("the change prunes what the pool does not hold")
        for child in change.added:
            if child.parent not in survivors:
                raise ValueError("the change adds a child whose parent did not stay")
            morphism = MORPHISMS.get(child.morphism)
            if morphism is None or morphism.apply(child.parent) != child.op:
                names = f"'{child.parent.label}' by '{child.morphism:.60}'"
                raise ValueError(f"'{child.op.label}' is no child of {names}")
        born = tuple(Arrival(child.op, child.parent, child.morphism) for child in change.added)
        return EdgePool(survivors + tuple(child.op for child in born), self.births + born)

    def evolve(
        self,
        weights: Sequence[float],
        keep: int,
        number: int,
        limits: Limits,
        generator: Random,
        scores: Scores = softmax,
        worth: EdgeWorth | None = None,
        protect_conv: bool = True,
    ) -> tuple["EdgePool", EdgeChange]:
        """Prune, then replace: `keep` candidates stay, up to `number` children come in.

        With `protect_conv` the best convolution stays in any case, else the best but 'zero'.
        A measured `worth`, if there is one, judges them instead of the weights.
        """
        if keep < 1:
            raise ValueError(f"a pool keeps at least one candidate, got {keep}")
        values = checked_scores(scores, weights, len(self.candidates))
        if worth is None:
            ranked = ranking(values, weights, generator)
        else:
            ranked = list(worth.order)
            values = worth.probabilities(range(len(self.candidates)))
        survivors = self._survivors(ranked, keep, protect_conv)
        pruned = tuple(
            Pruned(op, values[index])
            for index, op in enumerate(self.candidates)
            if index not in survivors
        )
        if worth is None:
            values = checked_scores(scores, [weights[index] for index in survivors], len(survivors))
        else:
            values = worth.probabilities(survivors)
        parents = [self.candidates[index] for index in survivors]
        children = _children(parents, as_probabilities(values), limits)
        added = self._draw_children(children, parents, number, generator)
        change = EdgeChange(pruned, tuple(added))
        return self.apply(change), change

    def _survivors(self, ranked: Sequence[int], keep: int, protect_conv: bool) -> list[int]:
        """The first `keep` of the ranked candidates, and the best protected one in any case."""
        survivors = list(ranked[:keep])
        protected = [
            index
            for index in ranked
            if (
                isinstance(self.candidates[index], Convolution)
                if protect_conv
                else not isinstance(self.candidates[index], Zero)
            )
        ]
        if protected and protected[0] not in survivors:
            survivors[-1] = protected[0]
        return sorted(survivors)

    def _draw_children(
        self, children: list[Added], parents: list[Operation], number: int, generator: Random
    ) -> list[Added]:
        """Up to `number` of these children, drawn one after the other.

        Each draw is exact: parent by its score, morphism uniform among its legal ones, given that
        the child is unknown to this edge; only when no unknown child is left, given that it is
        not in the pool now. If there is none either, the pool stays smaller.
        """
        drawn: list[Added] = []
        ever_held, present = set(self.ever_held), set(parents)
        for _ in range(number):
            unknown = [child for child in children if child.op not in ever_held]
            choices = unknown or [child for child in children if child.op not in present]
            if not choices:
                break
            drawn.append(replace(_draw(choices, generator), returned=not unknown))
            ever_held.add(drawn[-1].op)
            present.add(drawn[-1].op)
        return drawn


def ranking(scores: Sequence[float], weights: Sequence[float], generator: Random) -> list[int]:
    """Indices by falling score, then weight; the generator draws the order of equals."""
    indices = list(range(len(scores)))
    generator.shuffle(indices)
    return sorted(indices, key=lambda index: (-scores[index], -weights[index]))


def _children(
    parents: Sequence[Operation], probabilities: Sequence[float], limits: Limits
) -> list[Added]:
    """Every child that the parents can have, with its probability if all may be drawn."""
    children: list[Added] = []
    for parent, probability in zip(parents, probabilities, strict=True):
        legal = morphs(parent, limits)
        # A softmax may underflow to zero; the parent's legal children must not.
        share = max(probability / max(len(legal), 1), 1e-300)
        children += [
            Added(child, parent, morphism.name, probability, share) for morphism, child in legal
        ]
    return children


def _draw(children: Sequence[Added], generator: Random) -> Added:
    """One of these children, by their probabilities, now given that it is one of them."""
    shares = [child.probability for child in children]
    *_, total = accumulate(shares)
    probabilities = [share / total for share in shares]
    point = generator.random()
    bounds = enumerate(accumulate(probabilities))
    index = next((index for index, bound in bounds if point < bound), len(children) - 1)
    return replace(children[index], probability=probabilities[index])

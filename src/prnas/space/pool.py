"""The candidates of an edge and how they change: prune and replace decide, they do not act."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp, isfinite
from random import Random
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, TypeAdapter

from prnas.space.change import Added, EdgeChange, Pruned
from prnas.space.morphisms import MORPHISMS, Morphism, morphs
from prnas.space.operations import STRICT, Conv, Operation, OperationField, Zero, checked_tuple
from prnas.space.reading import validated
from prnas.space.setting import Limits


@dataclass(frozen=True, slots=True)
class Birth:
    """How a candidate came to an edge: by a morphism of its parent, or with the initial pool."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    op: OperationField
    parent: OperationField | None = None
    morphism: str | None = None


@dataclass(frozen=True, slots=True)
class EdgePool:
    """The candidates of one edge now, and every arrival so far in order."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    candidates: Annotated[tuple[OperationField, ...], Field(strict=False)]
    births: Annotated[tuple[Birth, ...], Field(strict=False)]

    def __post_init__(self) -> None:
        object.__setattr__(self, "candidates", checked_tuple("candidates", self.candidates))
        object.__setattr__(self, "births", checked_tuple("births", self.births))
        if not self.candidates:
            raise ValueError("a pool holds at least one candidate")
        if len(set(self.candidates)) < len(self.candidates):
            raise ValueError("a pool holds no candidate twice")
        if not self.held.issuperset(self.candidates):
            raise ValueError("a pool's births must tell where each candidate came from")

    @classmethod
    def initial(cls, operations: Sequence[Operation]) -> "EdgePool":
        return cls(tuple(operations), tuple(Birth(op) for op in operations))

    @property
    def held(self) -> frozenset[Operation]:
        """Every operation that the edge has ever held."""
        return frozenset(birth.op for birth in self.births)

    @property
    def parents(self) -> dict[Operation, Operation | None]:
        """Who is whose parent, by the latest arrival; `None` for the initial pool."""
        return {birth.op: birth.parent for birth in self.births}

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
        born = tuple(Birth(one.op, one.parent, one.morphism) for one in change.added)
        return EdgePool(stay + tuple(one.op for one in change.added), self.births + born)

    def prune(
        self, weights: Sequence[float], keep: int, generator: Random, *, last: bool = False
    ) -> tuple["EdgePool", EdgeChange]:
        """Keep the `keep` candidates of the highest architecture weights.

        The best convolution always stays, except in the `last` cycle, when instead a 'zero' goes
        before anything else, since no genotype may keep it. The generator breaks ties.
        """
        change = self._prune(weights, keep, generator, last)
        return self.apply(change), change

    def _prune(
        self, weights: Sequence[float], keep: int, generator: Random, last: bool
    ) -> EdgeChange:
        if keep < 1:
            raise ValueError(f"a pool keeps at least one candidate, got {keep}")
        probabilities = softmax(weights, len(self.candidates))
        ranked = ranking(weights, generator)
        if last:
            ranked.sort(key=lambda place: isinstance(self.candidates[place], Zero))
        stay = ranked[:keep]
        if not last:
            convs = [place for place in ranked if isinstance(self.candidates[place], Conv)]
            if convs and convs[0] not in stay:
                stay[-1] = convs[0]
        return EdgeChange(
            pruned=tuple(
                Pruned(op, probabilities[place])
                for place, op in enumerate(self.candidates)
                if place not in stay
            )
        )

    def replace(
        self, weights: Sequence[float], number: int, limits: Limits, generator: Random
    ) -> tuple["EdgePool", EdgeChange]:
        """Add up to `number` children of the present candidates, drawn one after the other.

        Each draw is exact: parent by softmax, morphism uniform among its legal ones, given that
        the child is unknown to this edge; only when no unknown child is left, given that it is
        not in the pool now. If there is none either, the pool stays smaller.
        """
        change = self._replace(self.candidates, weights, number, limits, generator)
        return self.apply(change), change

    def _replace(
        self,
        parents: Sequence[Operation],
        weights: Sequence[float],
        number: int,
        limits: Limits,
        generator: Random,
    ) -> EdgeChange:
        probabilities = softmax(weights, len(parents))
        held, present = set(self.held), set(parents)
        added: list[Added] = []
        for _ in range(number):
            draws, returned = _draws(parents, probabilities, limits, held), False
            if not draws:
                draws, returned = _draws(parents, probabilities, limits, present), True
            if not draws:
                break
            place, morphism, child, probability = draws[_index(draws, generator)]
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
            held.add(child)
            present.add(child)
        return EdgeChange(added=tuple(added))

    def evolve(
        self,
        weights: Sequence[float],
        keep: int,
        number: int,
        limits: Limits,
        generator: Random,
        *,
        last: bool = False,
    ) -> tuple["EdgePool", EdgeChange]:
        """Prune, then replace: an edge's part in the end of a cycle."""
        pruned = self._prune(weights, keep, generator, last)
        gone = [one.op for one in pruned.pruned]
        stay = [place for place, op in enumerate(self.candidates) if op not in gone]
        parents = [self.candidates[place] for place in stay]
        left = [weights[place] for place in stay]
        change = pruned.then(self._replace(parents, left, number, limits, generator))
        return self.apply(change), change

    def to_json(self) -> dict[str, Any]:
        return _ADAPTER.dump_python(self, mode="json")

    @classmethod
    def from_json(cls, data: Any) -> "EdgePool":
        return validated(_ADAPTER, data, "pool")


_ADAPTER = TypeAdapter(EdgePool)


def softmax(weights: Sequence[float], size: int) -> list[float]:
    """The probabilities of `size` candidates from their architecture weights."""
    if len(weights) != size:
        raise ValueError(f"{size} candidates need {size} architecture weights, got {len(weights)}")
    if not all(map(isfinite, weights)):
        raise ValueError(f"architecture weights must be finite, got {list(weights)}")
    top = max(weights)
    powers = [exp(weight - top) for weight in weights]
    total = sum(powers)
    return [power / total for power in powers]


def ranking(weights: Sequence[float], generator: Random) -> list[int]:
    """Places from the highest weight to the lowest, equals in an order drawn by the generator."""
    places = list(range(len(weights)))
    generator.shuffle(places)
    return sorted(places, key=lambda place: -weights[place])


Draw = tuple[int, Morphism, Operation, float]


def _draws(
    candidates: Sequence[Operation],
    probabilities: Sequence[float],
    limits: Limits,
    refused: Mapping[Operation, Any] | set[Operation],
) -> list[Draw]:
    """Every acceptable (parent's place, morphism, child), with its exact probability."""
    found: list[Draw] = []
    total = 0.0
    for place, (op, probability) in enumerate(zip(candidates, probabilities, strict=True)):
        legal = morphs(op, limits)
        for morphism, child in legal:
            if child not in refused:
                # A softmax may underflow to zero; the parent's legal children must not.
                share = max(probability / len(legal), 1e-300)
                found.append((place, morphism, child, share))
                total += share
    return [(place, morphism, child, share / total) for place, morphism, child, share in found]


def _index(draws: Sequence[Draw], generator: Random) -> int:
    point = generator.random()
    sums = accumulate(draw[3] for draw in draws)
    return next((place for place, bound in enumerate(sums) if point < bound), len(draws) - 1)

"""The base of all searchers, which propose cells, learn from scores, and can be saved anytime."""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from prnas.searchers.cells import CellSpace
from prnas.space.genotype import Genotype


@dataclass(frozen=True, slots=True)
class Proposal:
    """A cell whose score a searcher wants to know.

    `parent` is the number of the evaluation of the cell that this one was made from. `share` is how
    much of a whole evaluation, such as a training, this one deserves.
    """

    genotype: Genotype
    parent: int | None = None
    share: float = 1.0

    def to_json(self) -> dict[str, Any]:
        return {"genotype": self.genotype.to_json(), "parent": self.parent, "share": self.share}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Proposal":
        return cls(Genotype.from_json(data["genotype"]), data["parent"], float(data["share"]))


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A cell with its score, and the number of its evaluation, from 1."""

    genotype: Genotype
    score: float
    number: int

    def to_json(self) -> dict[str, Any]:
        return {"genotype": self.genotype.to_json(), "score": self.score, "number": self.number}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Evaluated":
        return cls(Genotype.from_json(data["genotype"]), float(data["score"]), int(data["number"]))


class Searcher(ABC):
    """Asks for the scores of cells, one after the other. A greater score is a better one.

    `ask` answers the same cell until `tell` says its score. All randomness comes from `generator`,
    and `state` is all that another searcher of the same kind and space needs to go on exactly.
    """

    name: ClassVar[str]

    def __init__(self, space: CellSpace, generator: Random) -> None:
        self.space, self.generator = space, generator
        self.num_evaluations = 0
        self.best: Evaluated | None = None  # The first of equals.
        self._best_share = 0.0  # a score by more of an evaluation is better than any by less
        self._proposal: Proposal | None = None
        # The entropy of the choices that made the cell asked for last, where a policy makes them.
        self.entropy: float | None = None

    def ask(self) -> Genotype:
        """The cell whose score is wanted now."""
        return self.proposal.genotype

    @property
    def proposal(self) -> Proposal:
        """The same, with all that is known of it."""
        if self._proposal is None:
            self._proposal = self._propose()
        return self._proposal

    def tell(self, genotype: Genotype, score: float) -> None:
        """The score of the cell that was asked for."""
        if self._proposal is None or genotype != self._proposal.genotype:
            raise ValueError("the score must be of the cell that was asked for last")
        if not math.isfinite(score):
            raise ValueError(f"a score must be a finite number, got {score}")
        proposal, self._proposal = self._proposal, None
        self.num_evaluations += 1
        evaluated = Evaluated(genotype, score, self.num_evaluations)
        more = proposal.share > self._best_share
        if more or (
            proposal.share == self._best_share and self.best is not None and score > self.best.score
        ):
            self.best, self._best_share = evaluated, proposal.share
        self._learn(evaluated, proposal)

    @property
    def num_settled(self) -> int:
        """The number of next proposals that are the same whatever the scores of the others are."""
        return 1

    def upcoming(self, most: int) -> list[Proposal]:
        """The next proposals, as far as they are settled; the first is `proposal`."""
        ahead = copy.deepcopy(self, {id(self.space): self.space})
        proposals = [ahead.proposal]
        for _ in range(min(most, self.num_settled) - 1):
            ahead.tell(ahead.ask(), 0.0)
            proposals.append(ahead.proposal)
        return proposals

    @abstractmethod
    def _propose(self) -> Proposal:
        """The next cell to ask for."""

    @abstractmethod
    def _learn(self, evaluated: Evaluated, proposal: Proposal) -> None:
        """Remember what was told, as far as it matters."""

    def state(self) -> dict[str, Any]:
        """All that is needed to go on, as plain data."""
        version, numbers, gauss = self.generator.getstate()
        return {
            "method": self.name,
            "evaluations": self.num_evaluations,
            "best": self.best and self.best.to_json(),
            "best_share": self._best_share,
            "asked": self._proposal and self._proposal.to_json(),
            "generator": [version, list(numbers), gauss],
            **self._own_state(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from where `state` was taken."""
        if state["method"] != self.name:
            raise ValueError(f"the state is of '{state['method']!s:.60}', not of '{self.name}'")
        version, numbers, gauss = state["generator"]
        self.generator.setstate((version, tuple(numbers), gauss))
        self.num_evaluations = int(state["evaluations"])
        best, proposal = state["best"], state["asked"]
        self._best_share = float(state.get("best_share", best is not None))
        self.best = None if best is None else Evaluated.from_json(best)
        self._proposal = None if proposal is None else Proposal.from_json(proposal)
        self._load_own(state)

    def _own_state(self) -> dict[str, Any]:
        """The memory of this kind of searcher, by names that no other field has."""
        return {}

    def _load_own(self, state: Mapping[str, Any]) -> None:  # noqa: B027 - it may have nothing
        """The same, read back."""

"""Cycles and their schedule: PR-DARTS, DARTS and P-DARTS differ in these values alone."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp
from typing import Annotated

from pydantic import Field

from prnas.space.checks import checked_int, checked_tuple

MOST_EPOCHS = 100_000
MOST_CELLS = 200
MIN_CELLS = 3  # fewer have no normal cell: two are reductions
MOST_CHANNELS = 10_000
MOST_DECAY = 1_000


@dataclass(frozen=True, slots=True)
class Cycle:
    """One stretch of training and the prune-and-replace that ends it.

    `candidates` is the size of every pool after the replacement, `morphisms` how many of them are
    new children. `cells`, `channels` and `partial_channels` (`None`: as in the network's config)
    and `skip_dropout` shape the supernet during the cycle. With `protect_conv`, the best
    convolution of an edge survives in any case.
    """

    #: Number of epochs.
    epochs: int
    #: Epochs at the start that train the network's weights only.
    grace_epochs: int
    #: New children of each pool at the cycle's end.
    morphisms: int
    #: Size of each pool after that, the children included; of the last cycle 1.
    candidates: int
    #: Cells of the supernet in this cycle; null: as the network's config says.
    cells: int | None = None
    #: Channels of the supernet in this cycle; null: as the network's config says.
    channels: int | None = None
    #: Probability of dropping the values that a skip passes on.
    skip_dropout: float = 0.0
    #: How fast that falls within the cycle, as in P-DARTS; 0: it is constant.
    skip_dropout_decay: float = 0.0
    #: Whether the best convolution of an edge survives in any case.
    protect_conv: bool = True
    #: Parts of the channels, of which candidates compute one; null: as the network's config says.
    partial_channels: int | None = None

    def skip_dropout_in(self, epoch: int) -> float:
        """The dropout of skips in an epoch of the cycle, from 0.

        Constant, or with a decay that of P-DARTS: linear in the grace epochs, exponential after.
        """
        if not self.skip_dropout_decay:
            return self.skip_dropout
        if epoch < self.grace_epochs:
            return self.skip_dropout * (self.epochs - 1 - epoch) / self.epochs
        return self.skip_dropout * exp(-self.skip_dropout_decay * (epoch - self.grace_epochs))

    @property
    def survivors(self) -> int:
        """The number of candidates that the pruning leaves on every edge."""
        return self.candidates - self.morphisms

    def problems(self) -> Iterable[str]:
        """The problems of the cycle by itself, as messages."""
        bounds: list[tuple[str, object, int, int]] = [
            ("epochs", self.epochs, 1, MOST_EPOCHS),
            ("grace_epochs", self.grace_epochs, 0, MOST_EPOCHS),
            ("morphisms", self.morphisms, 0, 1000),
            ("candidates", self.candidates, 1, 1000),
        ]
        if self.cells is not None:
            bounds.append(("cells", self.cells, MIN_CELLS, MOST_CELLS))
        if self.channels is not None:
            bounds.append(("channels", self.channels, 1, MOST_CHANNELS))
        if self.partial_channels is not None:
            bounds.append(("partial_channels", self.partial_channels, 1, MOST_CHANNELS))
        for name, value, least, most in bounds:
            try:
                checked_int(name, value, least, most)
            except ValueError as error:
                yield str(error)
        if type(self.skip_dropout) not in (int, float) or not 0 <= self.skip_dropout < 1:
            yield f"skip_dropout must be at least 0 and below 1, got {self.skip_dropout!r:.60}"
        decay = self.skip_dropout_decay
        if type(decay) not in (int, float) or not 0 <= decay <= MOST_DECAY:
            yield f"skip_dropout_decay must be from 0 to {MOST_DECAY}, got {decay!r:.60}"
        if type(self.protect_conv) is not bool:
            yield f"protect_conv must be true or false, got {self.protect_conv!r:.60}"
        if any(type(value) is not int for _, value, _, _ in bounds):
            return  # then they cannot be compared
        if self.grace_epochs > self.epochs:
            yield f"grace_epochs ({self.grace_epochs}) exceed the cycle's epochs ({self.epochs})"
        if self.morphisms and self.morphisms >= self.candidates:
            fewer = f"morphisms ({self.morphisms}) must be fewer than candidates"
            yield f"{fewer} ({self.candidates}), so that a parent stays"


@dataclass(frozen=True, slots=True)
class Schedule:
    """All cycles of a search, checked as a whole: one error names every problem."""

    #: The cycles, one after the other; DARTS has one.
    cycles: Annotated[tuple[Cycle, ...], Field(strict=False)]

    def __post_init__(self) -> None:
        object.__setattr__(self, "cycles", checked_tuple("cycles", self.cycles))
        if problems := list(self._problems()):
            raise ValueError("; ".join(problems))

    def _problems(self) -> Iterable[str]:
        if not self.cycles:
            yield "a schedule has at least one cycle"
            return
        for number, cycle in enumerate(self.cycles):
            for problem in cycle.problems():
                yield f"cycles[{number}]: {problem}"
        last = self.cycles[-1]
        where = f"cycles[{len(self.cycles) - 1}]"
        if last.candidates != 1:
            rule = "the last cycle must end with one candidate on every edge"
            yield f"{where}: {rule}, got candidates = {last.candidates}"
        if last.morphisms:
            yield f"{where}: the last cycle adds no children, got morphisms = {last.morphisms}"

    def pool_problems(self, initial_size: int) -> list[str]:
        """Messages about cycles that should keep more candidates than the pools hold by then.

        `initial_size` is the size of the first pools.
        """
        sizes = [initial_size, *(cycle.candidates for cycle in self.cycles)]
        return [
            f"cycles[{number}]: {cycle.survivors} candidates are to stay, but the pools hold {size}"
            for number, (cycle, size) in enumerate(zip(self.cycles, sizes, strict=False))
            if cycle.survivors > size
        ]

    @property
    def num_epochs(self) -> int:
        return sum(cycle.epochs for cycle in self.cycles)

    @property
    def num_replacements(self) -> int:
        """The number of cycles that add children: the most morphisms between two operations."""
        return sum(cycle.morphisms > 0 for cycle in self.cycles)


def paper_schedule() -> Schedule:
    """The paper's nine cycles of 100 epochs."""
    first = [Cycle(15, 5, 3, 6)] * 2 + [Cycle(10, 3, 3, 6)] * 3
    return Schedule((*first, *(Cycle(10, 3, 0, left) for left in (4, 3, 2, 1))))

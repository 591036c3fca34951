"""The weights of the best epoch so far, by its validation."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from torch import Tensor, nn

from prnas.io.reading import validated
from prnas.runs.records import Score


class _Best(BaseModel):
    """The best epoch as a checkpoint stores it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    epoch: Annotated[int, Field(ge=1)] | None = None  # from 1; none is validated yet
    accuracy: float = 0.0  # by which epochs are compared
    score: Score | None = None


class BestNetwork:
    """A copy of the network, as it was after its best epoch."""

    def __init__(self, network: nn.Module) -> None:
        self.network = network.eval()
        self._best = _Best()

    @property
    def epoch(self) -> int | None:
        return self._best.epoch

    @property
    def score(self) -> Score | None:
        return self._best.score

    def offer(self, network: nn.Module, epoch: int, accuracy: float, score: Score) -> bool:
        """Keep the network's weights if it is the best so far; of equal ones, by its loss.

        `accuracy` is what epochs are compared by; of equals in all, the first stays.
        """
        best = self._best.score
        if best is not None and (accuracy, -score.loss) <= (self._best.accuracy, -best.loss):
            return False
        self.network.load_state_dict(network.state_dict())
        self._best = _Best(epoch=epoch, accuracy=accuracy, score=score)
        return True

    def state(self) -> dict[str, Any]:
        return self._best.model_dump()

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._best = validated(TypeAdapter(_Best), state, "kept")


def mean_of_classes(confusion: Tensor) -> float:
    """The mean of all classes' accuracies; `confusion` has a row for each true class."""
    counts = confusion.sum(1)
    there = counts > 0
    return float((confusion.diagonal()[there] / counts[there].double()).mean())

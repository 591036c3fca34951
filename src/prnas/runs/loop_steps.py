"""The steps of a loop: they take from it all that they work with."""

from typing import Any, Generic, TypeVar

from prnas.config.search import RunConfig
from prnas.runs.loop import Loop
from prnas.runs.state import RunState
from prnas.runs.step import StepTaker

C = TypeVar("C", bound=RunConfig)
S = TypeVar("S", bound=RunState)


class LoopSteps(StepTaker[S], Generic[C, S]):
    """Takes the steps of a loop whose state is there already."""

    def __init__(self, loop: Loop[C, S, Any]) -> None:
        super().__init__(
            loop.processes,
            loop.state,
            loop.streams,
            loop.augmentation,
            loop.batch,
            lambda: loop.tell_batch("out-of-memory"),
        )
        self.config = loop.config

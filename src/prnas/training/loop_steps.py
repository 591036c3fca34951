"""The steps of a loop: they take from it all that they work with."""

from typing import Any, Generic, TypeVar

from prnas.config import RunConfig
from prnas.training.loop import Loop
from prnas.training.run_state import RunState
from prnas.training.step_taker import StepTaker

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

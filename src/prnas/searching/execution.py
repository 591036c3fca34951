"""How the supernet is computed in a search: as the config says or, if it says `auto`, measured.

On a CPU, `auto` is the fused way, which was measured to be the faster there. On other devices both
ways take a few real steps at the start of every cycle, once the batch size has settled, and the
faster goes on. The two differ by rounding only, yet a resumed search repeats the decision.
"""

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional as F

from prnas.config.choices import Execution
from prnas.nets.kernels.batch_norm import FrozenStatistics
from prnas.nets.supernet import Supernet

if TYPE_CHECKING:
    pass

WAYS: tuple[Execution, ...] = ("fused", "plain")
WARM_UP = 2  # steps of each way that are not timed: kernels may be chosen or compiled in them
TIMED = 5  # steps of each way that are


def is_measured(device: torch.device) -> bool:
    """Whether `auto` has to measure on a device."""
    return device.type != "cpu"


class ExecutionTrial:
    """Which way each step of a cycle goes: first both ways are timed, then the faster goes on."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.seconds: dict[Execution, list[float]] = {way: [] for way in WAYS}
        self.decision: Execution | None = None

    @property
    def way(self) -> Execution:
        """The way of the next step."""
        if self.decision is not None:
            return self.decision
        return next((way for way in WAYS if len(self.seconds[way]) < WARM_UP + TIMED), WAYS[-1])

    @property
    def complete(self) -> bool:
        return all(len(seconds) == WARM_UP + TIMED for seconds in self.seconds.values())

    def median(self, way: Execution) -> float:
        """The seconds of a timed step."""
        return median(self.seconds[way][WARM_UP:])

    @property
    def faster(self) -> Execution:
        return min(WAYS, key=self.median)

    def state(self) -> dict[str, Any]:
        return {"seconds": self.seconds, "decision": self.decision}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """As it was saved; a `ValueError` if it cannot be so."""
        decision, seconds = state["decision"], state["seconds"]
        if decision is not None and decision not in WAYS:
            raise ValueError(f"the supernet cannot be computed '{decision!s:.60}'")
        self.decision = decision
        self.seconds = {way: [float(value) for value in seconds[way]] for way in WAYS}


def fused_works(supernet: Supernet, shape: tuple[int, ...]) -> bool:
    """Whether the device has all kernels that the fused way needs; tried on two blank images.

    Not a bit of the supernet changes.
    """
    before, like = supernet.execution, supernet.classifier.weight
    images = torch.zeros(2, *shape, dtype=like.dtype, device=like.device)
    labels = torch.zeros(2, dtype=torch.long, device=like.device)
    supernet.execution = "fused"
    supernet.relaxation.eval()
    try:
        with FrozenStatistics([supernet]):
            loss = F.cross_entropy(supernet(images), labels)
            torch.autograd.grad(loss, list(supernet.parameters()), allow_unused=True)
    except NotImplementedError:
        return False
    finally:
        supernet.execution = before
        supernet.relaxation.train(supernet.training)
    return True

"""The way the supernet is computed: as the config says or, for `auto`, the faster by measurement.

On a CPU, `auto` is the fused way, which was measured to be the faster there. On other devices both
ways take a few real steps at the start of every cycle, once the batch size has settled, and the
faster goes on. Steps of grace epochs are compared with their like only: a trial that the end of the
grace epochs interrupts starts anew. The two ways differ by rounding only, yet a resumed search
repeats the decision.
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
from prnas.runs.records import ExecutionRecord

if TYPE_CHECKING:
    from prnas.searching.search import Search

WAYS: tuple[Execution, ...] = ("fused", "plain")
WARM_UP = 2  # steps of each way that are not timed: kernels may be chosen or compiled in them
TIMED = 5  # steps of each way that are


def is_measured(device: torch.device) -> bool:
    """Whether `auto` has to measure on a device."""
    return device.type != "cpu"


class ExecutionTrial:
    """The choice between two ways for a cycle's steps: both are timed, then the faster goes on."""

    def __init__(self) -> None:
        self.seconds: dict[Execution, list[float]] = {way: [] for way in WAYS}
        self.decision: Execution | None = None

    @property
    def way(self) -> Execution:
        """The way of the next step."""
        if self.decision is not None:
            return self.decision
        return "fused" if len(self.seconds["fused"]) < WARM_UP + TIMED else "plain"

    @property
    def started(self) -> bool:
        return any(self.seconds.values())

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
        """Take a saved state; a `ValueError` if it is not possible."""
        decision, seconds = state["decision"], state["seconds"]
        self.decision = None if decision is None else _checked(decision)
        self.seconds = {way: [float(value) for value in seconds[way]] for way in WAYS}


def _checked(way: object) -> Execution:
    """A way that was saved; a `ValueError` if there is no such way."""
    for execution in WAYS:
        if way == execution:
            return execution
    raise ValueError(f"the supernet cannot be computed '{way!s:.60}'")


class SupernetExecution:
    """The choice of the supernet's execution in a search, step by step."""

    def __init__(self, search: "Search", saved: Mapping[str, Any] | None) -> None:
        self.search = search
        folder, processes = search.folder, search.processes
        self.replay: dict[str, str] = processes.broadcast(
            folder.execution_decisions() if folder else {}
        )
        choice = search.config.compute.supernet
        self.fixed: Execution | None = None if choice == "auto" else choice
        if choice == "auto" and not is_measured(processes.device):
            self.fixed = "fused"
        elif choice == "auto" and not fused_works(search.state.supernet, search.data.shape):
            self.fixed = "plain"
            search.emit(
                "on_message",
                f"{processes.device.type} lacks kernels of the fused supernet: it is computed "
                "plainly (compute.supernet=plain)",
            )
        self.start_cycle()
        if saved is not None and self.fixed is None:
            self.trial.load_state(saved["trial"])
            self.steady, self.batch = int(saved["steady"]), int(saved["batch"])
            search.state.supernet.execution = _checked(saved["execution"])

    def start_cycle(self) -> None:
        """The candidates were replaced: measure again."""
        self.trial = ExecutionTrial()
        self.steady, self.batch = 0, 0  # steps that the batch size has not changed
        self.search.state.supernet.execution = self.fixed or "fused"

    @property
    def _settled(self) -> bool:
        rule = self.search.batch.rule
        return rule.min == rule.max or self.steady > rule.every

    def take(self, step: Callable[[], None]) -> None:
        """Take a step, computed as is right for it."""
        if self.fixed is not None:
            return step()
        state = self.search.state
        supernet, position = state.supernet, state.position
        grace_ends = (position.epoch, position.step) == (state.cycle.grace_epochs, 0)
        if grace_ends and self.trial.decision is None:
            self.trial = ExecutionTrial()
        same_batch = self.search.batch.batch == self.batch
        if not same_batch and self.trial.decision is None:
            self.trial = ExecutionTrial()  # steps of other batches cannot be compared
        trial = self.trial
        self.steady = self.steady + 1 if same_batch else 0
        self.batch = self.search.batch.batch
        if trial.decision is not None or not (self._settled or trial.started):
            supernet.execution = trial.decision or "fused"
            return step()
        supernet.execution = way = trial.way
        seconds = self._timed(way, step)
        if self.search.batch.batch != self.batch:
            return None  # memory ran out within the step: the next one begins anew
        trial.seconds[way].append(seconds)
        if trial.complete:
            self._decide()
        return None

    def _decide(self) -> None:
        search, position = self.search, self.search.state.position
        key = position.key("execution")
        decision = self.replay.get(key) or search.processes.broadcast(self.trial.faster)
        self.trial.decision = _checked(decision)
        if search.folder is not None:
            search.folder.log_decision(key, decision)
        record = ExecutionRecord(
            **position.counts(),
            execution=self.trial.decision,
            seconds={way: self.trial.median(way) for way in WAYS},
        )
        search.record(record)
        times = ", ".join(f"{way} {self.trial.median(way):.3g}" for way in WAYS)
        search.emit(
            "on_message", f"supernet computed {decision} in this cycle (seconds a step: {times})"
        )

    def _timed(self, way: Execution, step: Callable[[], None]) -> float:
        """The seconds that a step takes, computed in a way that is set already."""
        _synchronize(self.search.processes.device)
        start = time.perf_counter()
        step()
        _synchronize(self.search.processes.device)
        return time.perf_counter() - start

    def state(self) -> dict[str, Any]:
        """Plain data for a checkpoint; nothing where nothing is measured."""
        if self.fixed is not None:
            return {}
        state = {"trial": self.trial.state(), "steady": self.steady, "batch": self.batch}
        return {"execution": {**state, "execution": self.search.state.supernet.execution}}


def _synchronize(device: torch.device) -> None:
    """Wait until a device has done all that it was given."""
    if device.type in ("cuda", "mps", "xpu"):
        torch.accelerator.synchronize()


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

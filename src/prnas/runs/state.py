"""The state of a run: all that a checkpoint holds, and nothing else."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from prnas.runs.checked_state import finite, finite_each, optimizer_state, whole
from prnas.runs.checkpoint import Checkpoint, prefixed, under
from prnas.runs.generators import torch_generator
from prnas.runs.records import Score

# The tensors of each parameter that make up an optimizer's state.
_SGD, _ADAM = frozenset({"momentum_buffer"}), frozenset({"step", "exp_avg", "exp_avg_sq"})


@dataclass(slots=True)
class Tally:
    """Loss and correct predictions, summed over images."""

    loss: float = 0.0
    correct: float = 0.0
    images: int = 0

    def add(self, loss: float, correct: float, images: int) -> None:
        self.loss += loss * images
        self.correct += correct
        self.images += images

    @property
    def mean_loss(self) -> float:
        return self.loss / max(self.images, 1)

    @property
    def accuracy(self) -> float:
        return self.correct / max(self.images, 1)

    @property
    def score(self) -> Score:
        return Score(loss=self.mean_loss, accuracy=self.accuracy, images=self.images)


@dataclass(slots=True)
class Position:
    """Where a run stands; `images` counts those that trained the weights in this cycle."""

    cycle: int = 0  # always 0 in a retraining, which has a single one
    epoch: int = 0
    step: int = 0  # step within the epoch
    cycle_step: int = 0
    images: int = 0
    done: bool = False

    def key(self, name: str) -> str:
        """A name for something that happens at this position, once in a run."""
        return f"{self.cycle}/{self.epoch}/{self.step}/{name}"


@dataclass(slots=True)
class EpochProgress:
    """The epoch under way: a tally for each part of a step, and seconds by time category."""

    tallies: dict[str, Tally]
    seconds: dict[str, float]
    memory: float = 0.0  # peak, in bytes
    lr: float = 0.0  # learning rate of the last step

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


class RunState(ABC):
    """Position, modules, optimizers and generators of a run.

    A subclass builds its modules in its constructor: for `saved`, the plain data of a checkpoint,
    as they were when that was written. `load_tensors` then fills them.
    """

    parts: tuple[str, ...]  # parts of a step, each trained with images of its own
    time_categories: tuple[str, ...]  # how an epoch's seconds are broken down in its record
    generator_names: tuple[str, ...]

    def __init__(self, seed: int, saved: Mapping[str, Any] | None = None) -> None:
        self.generators = {name: torch_generator(seed, name) for name in self.generator_names}
        self.position = Position()
        self.epoch = self._new_epoch()
        self.elapsed = 0.0  # seconds of all epochs before this one
        self.work_done: list[tuple[float, float]] = []  # estimated work and seconds, by epoch
        if saved is not None:
            self.position = _position(saved["position"])
            self.epoch = self._saved_epoch(saved["so_far"])
            self.elapsed = finite("elapsed", saved["elapsed"])
            self.work_done = [
                (finite("work", work), finite("seconds", seconds))
                for work, seconds in saved["work_done"]
            ]

    @property
    @abstractmethod
    def module(self) -> nn.Module:
        """The module that is trained."""

    @abstractmethod
    def modules(self) -> Mapping[str, nn.Module]:
        """All modules that have a state, by their prefix in a checkpoint."""

    @abstractmethod
    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        """The optimizers of the parameters of `module`, by their prefix in a checkpoint."""

    @property
    @abstractmethod
    def where(self) -> str:
        """The position, for people."""

    def _new_epoch(self) -> EpochProgress:
        seconds = dict.fromkeys(self.time_categories, 0.0)
        return EpochProgress({part: Tally() for part in self.parts}, seconds)

    @contextmanager
    def timed(self, category: str) -> Iterator[None]:
        """Within it, time counts for one of the epoch's `time_categories`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.epoch.seconds[category] += time.perf_counter() - start

    def next_epoch(self) -> None:
        self.position.epoch += 1
        self.position.step = 0
        self.epoch = self._new_epoch()

    def tensors(self) -> dict[str, Tensor]:
        """Weights, running statistics and optimizer states, by name."""
        tensors: dict[str, Tensor] = {}
        for name, module in self.modules().items():
            tensors |= prefixed(name, module.state_dict())
        names = {id(weight): name for name, weight in self.module.named_parameters()}
        for prefix, optimizer in self.optimizers().items():
            for parameter, values in optimizer.state.items():
                for key, value in values.items():
                    tensors[f"{prefix}/{names[id(parameter)]}/{key}"] = value
        return tensors

    def checkpoint(self, more: Mapping[str, Any]) -> Checkpoint:
        """The whole state, and what the run adds to it."""
        tensors = self.tensors()
        for name, generator in self.generators.items():
            tensors[f"generators/{name}"] = generator.get_state()
        epoch = self.epoch
        state = {
            "position": asdict(self.position),
            "so_far": {
                "sums": {part: asdict(tally) for part, tally in epoch.tallies.items()},
                "seconds": dict(epoch.seconds),
                "memory": epoch.memory,
                "lr": epoch.lr,
            },
            "elapsed": self.elapsed,
            "work_done": self.work_done,
            **self.extra_state(),
            **more,
        }
        return Checkpoint(state, {name: one.detach().cpu() for name, one in tensors.items()})

    @abstractmethod
    def extra_state(self) -> dict[str, Any]:
        """Plain data that only this kind of run has; its constructor reads it from `saved`."""

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Modules, optimizers and generators exactly as they were in a checkpoint."""
        for name, module in self.modules().items():
            module.load_state_dict(under(name, tensors))
        parameters = dict(self.module.named_parameters())
        for prefix, optimizer in self.optimizers().items():
            _load_optimizer(optimizer, parameters, under(prefix, tensors))
        for name, generator in self.generators.items():
            generator.set_state(tensors[f"generators/{name}"])

    def _saved_epoch(self, saved: Mapping[str, Any]) -> EpochProgress:
        tallies = {part: _tally(saved["sums"][part]) for part in self.parts}
        seconds = finite_each("seconds", saved["seconds"], self.time_categories)
        memory, lr = finite("memory", saved["memory"]), finite("lr", saved["lr"])
        return EpochProgress(tallies, seconds, memory, lr)


def _position(saved: Mapping[str, Any]) -> Position:
    position = Position(**saved)
    for name in ("cycle", "epoch", "step", "cycle_step", "images"):
        whole(name, getattr(position, name), most=2**63)
    if type(position.done) is not bool:
        raise ValueError(f"done must be true or false, got {position.done!r:.60}")
    return position


def _tally(saved: Mapping[str, Any]) -> Tally:
    return Tally(
        finite("loss", saved["loss"]),
        finite("correct", saved["correct"]),
        whole("images", saved["images"], most=2**63),
    )


def sgd(
    parameters: Sequence[nn.Parameter], lr: float, momentum: float, weight_decay: float
) -> torch.optim.SGD:
    device = parameters[0].device.type
    return torch.optim.SGD(
        parameters, lr, momentum, weight_decay=weight_decay, fused=device in ("cpu", "cuda")
    )


def _load_optimizer(
    optimizer: torch.optim.Optimizer,
    parameters: Mapping[str, nn.Parameter],
    tensors: Mapping[str, Tensor],
) -> None:
    keys = _ADAM if isinstance(optimizer, torch.optim.Adam) else _SGD
    owners = {name.rpartition("/")[0] for name in tensors}
    for owner in owners:
        optimizer_state(owner, under(owner, tensors), keys)
    own = {id(one) for group in optimizer.param_groups for one in group["params"]}
    if keys == _SGD and owners and len(owners) != len(own):
        raise ValueError(f"{len(owners)} of {len(own)} parameters have a momentum")
    for name, tensor in tensors.items():
        owner, key = name.rsplit("/", 1)
        parameter = parameters[owner]
        if key == "step":  # a count, which fused optimizers keep in single precision
            value = tensor.to(parameter.device)
        else:
            value = torch.empty_like(parameter, requires_grad=False).copy_(tensor)
        optimizer.state[parameter][key] = value

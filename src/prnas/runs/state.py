"""The state of a run, of whatever kind: all that a checkpoint holds, and nothing else."""

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

# What the optimizers keep of a parameter.
_SGD, _ADAM = frozenset({"momentum_buffer"}), frozenset({"step", "exp_avg", "exp_avg_sq"})


@dataclass(slots=True)
class Sums:
    """Loss and correct answers, summed over images."""

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


@dataclass(slots=True)
class Position:
    """Where a run stands; `images` counts those that trained the weights in this cycle."""

    cycle: int = 0  # of a search; a training has but one
    epoch: int = 0
    step: int = 0  # of the epoch
    cycle_step: int = 0
    images: int = 0
    done: bool = False

    def place(self, what: str) -> str:
        """A name for something that happens here, once in a run."""
        return f"{self.cycle}/{self.epoch}/{self.step}/{what}"


@dataclass(slots=True)
class EpochSoFar:
    """What the epoch under way has seen: sums by part of a step, seconds by what they went to."""

    sums: dict[str, Sums]
    seconds: dict[str, float]
    memory: float = 0.0
    lr: float = 0.0  # of the last step

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


class RunState(ABC):
    """Position, modules, optimizers and generators of a run."""

    step_parts: tuple[str, ...]  # of a step, each with its sums
    parts: tuple[str, ...]  # that an epoch's seconds are told by
    generator_names: tuple[str, ...]

    def __init__(self, seed: int) -> None:
        self.position = Position()
        self.so_far = self._new_epoch()
        self.elapsed = 0.0  # seconds of all epochs before this one
        self.work_done: list[tuple[float, float]] = []  # estimated work and seconds, by epoch
        self.generators = {name: torch_generator(seed, name) for name in self.generator_names}

    @property
    @abstractmethod
    def module(self) -> nn.Module:
        """What is trained."""

    @abstractmethod
    def modules(self) -> Mapping[str, nn.Module]:
        """All modules that have a state, by the name of their place in a checkpoint."""

    @abstractmethod
    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        """Of parameters of `module`."""

    @property
    @abstractmethod
    def where(self) -> str:
        """The position, for people."""

    def _new_epoch(self) -> EpochSoFar:
        return EpochSoFar(
            {part: Sums() for part in self.step_parts}, dict.fromkeys(self.parts, 0.0)
        )

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Within it, time counts for one of `parts` of the epoch."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.so_far.seconds[part] += time.perf_counter() - start

    def next_epoch(self) -> None:
        self.position.epoch += 1
        self.position.step = 0
        self.so_far = self._new_epoch()

    def tensors(self) -> dict[str, Tensor]:
        """Weights, running statistics and what optimizers remember, by their name."""
        tensors: dict[str, Tensor] = {}
        for name, module in self.modules().items():
            tensors |= prefixed(name, module.state_dict())
        names = {id(one): name for name, one in self.module.named_parameters()}
        for prefix, optimizer in self.optimizers().items():
            for parameter, values in optimizer.state.items():
                for key, value in values.items():
                    tensors[f"{prefix}/{names[id(parameter)]}/{key}"] = value
        return tensors

    def checkpoint(self, more: Mapping[str, Any]) -> Checkpoint:
        """The whole state; `more` is what others add to it."""
        tensors = self.tensors()
        for name, generator in self.generators.items():
            tensors[f"generators/{name}"] = generator.get_state()
        state = {
            "position": asdict(self.position),
            "so_far": asdict(self.so_far),
            "elapsed": self.elapsed,
            "work_done": self.work_done,
            **self._own(),
            **more,
        }
        return Checkpoint(state, {name: one.detach().cpu() for name, one in tensors.items()})

    @abstractmethod
    def _own(self) -> dict[str, Any]:
        """What this kind of run adds."""

    @abstractmethod
    def _load_own(self, state: Mapping[str, Any]) -> None:
        """The opposite; modules and optimizers must be there afterwards."""

    def load(self, checkpoint: Checkpoint) -> None:
        """Go on exactly where the checkpoint was made."""
        state, tensors = checkpoint.state, checkpoint.tensors
        self.position = _position(state["position"])
        self.so_far = self._so_far(dict(state["so_far"]))
        self.elapsed = finite("elapsed", state["elapsed"])
        self.work_done = [
            (finite("work", work), finite("seconds", seconds))
            for work, seconds in state["work_done"]
        ]
        self._load_own(state)
        for name, module in self.modules().items():
            module.load_state_dict(under(name, tensors))
        parameters = dict(self.module.named_parameters())
        for prefix, optimizer in self.optimizers().items():
            _load_optimizer(optimizer, parameters, under(prefix, tensors))
        for name, generator in self.generators.items():
            generator.set_state(tensors[f"generators/{name}"])

    def _so_far(self, plain: dict[str, Any]) -> EpochSoFar:
        sums = {part: _sums(plain["sums"][part]) for part in self.step_parts}
        seconds = finite_each("seconds", plain["seconds"], self.parts)
        memory, lr = finite("memory", plain["memory"]), finite("lr", plain["lr"])
        return EpochSoFar(sums, seconds, memory, lr)


def _position(plain: Mapping[str, Any]) -> Position:
    found = Position(**plain)
    for name in ("cycle", "epoch", "step", "cycle_step", "images"):
        whole(name, getattr(found, name), most=2**63)
    if type(found.done) is not bool:
        raise ValueError(f"done must be true or false, got {found.done!r:.60}")
    return found


def _sums(plain: Mapping[str, Any]) -> Sums:
    return Sums(
        finite("loss", plain["loss"]),
        finite("correct", plain["correct"]),
        whole("images", plain["images"], most=2**63),
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

"""The state of a run: all that a checkpoint holds, and nothing else."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Annotated, Any

import torch
from pydantic import ConfigDict, Field, TypeAdapter
from torch import Tensor, nn

from prnas.config.sections import RunConfig
from prnas.io.reading import validated
from prnas.runs.checkpoint import Checkpoint, under
from prnas.runs.preparation import torch_generator
from prnas.runs.records import Score

# The tensors of each parameter that make up an optimizer's state.
_SGD, _ADAM = {"momentum_buffer"}, {"step", "exp_avg", "exp_avg_sq"}
# How strictly the plain data of a checkpoint are read.
_STRICT = ConfigDict(extra="forbid", strict=True)
Count = Annotated[int, Field(ge=0, lt=2**63)]
SavedState = Mapping[str, Any]  # the plain data of a checkpoint


@dataclass(slots=True)
class Tally:
    """Loss and correct predictions, summed over images."""

    __pydantic_config__ = _STRICT
    loss: float = 0.0
    correct: float = 0.0
    images: Count = 0

    def add(self, loss: float, correct: float, images: int) -> None:
        self.loss += loss * images
        self.correct += correct
        self.images += images

    @property
    def score(self) -> Score:
        images = max(self.images, 1)
        return Score(loss=self.loss / images, accuracy=self.correct / images, images=self.images)


@dataclass(slots=True)
class Position:
    """The position of a run, from 0; `images` are those that trained weights in this cycle."""

    __pydantic_config__ = _STRICT
    cycle: Count = 0  # always 0 in a retraining, which has a single one
    epoch: Count = 0
    step: Count = 0  # step within the epoch
    cycle_step: Count = 0
    images: Count = 0
    done: bool = False
    # The rates of the cycle's architecture steps so far, added up.
    travelled: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0

    def counts(self) -> dict[str, Any]:
        """The same numbers as records have them: from 1."""
        return {"cycle": self.cycle + 1, "epoch": self.epoch + 1, "step": self.step + 1}

    def key(self, name: str) -> str:
        """A name for something that happens at this position, once in a run."""
        return f"{self.cycle}/{self.epoch}/{self.step}/{name}"


@dataclass(slots=True)
class EpochProgress:
    """The epoch under way: a tally for each part of a step, and seconds by time category."""

    __pydantic_config__ = _STRICT
    tallies: Annotated[dict[str, Tally], Field(alias="sums")]
    seconds: dict[str, float]
    memory: float = 0.0  # peak, in bytes
    lr: float = 0.0  # learning rate of the last step
    architecture_lr: float | None = None  # The rate of the last architecture step.

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


@dataclass(slots=True)
class _Saved:
    """The plain data in a checkpoint that every run has, by their names there."""

    __pydantic_config__ = _STRICT
    position: Position
    so_far: EpochProgress
    elapsed: float
    work_done: list[tuple[float, float]]


_SAVED = TypeAdapter(_Saved)


class RunState(ABC):
    """Position, modules, optimizers and generators of a run.

    A subclass builds its modules in its constructor: for `saved`, the plain data of a checkpoint,
    as they were when that was written. `load_tensors` then fills them.
    """

    parts: tuple[str, ...]  # parts of a step, each trained with images of its own
    time_categories: tuple[str, ...]  # how an epoch's seconds are broken down in its record
    generator_names: tuple[str, ...]

    def __init__(self, config: RunConfig, saved: SavedState | None) -> None:
        names, categories = self.generator_names, self.time_categories
        self.generators = {name: torch_generator(config.seed, name) for name in names}
        self.position = Position()
        self.epoch = self._new_epoch()
        self.elapsed = 0.0  # seconds of all epochs before this one
        self.work_done: list[tuple[float, float]] = []  # estimated work and seconds, by epoch
        if saved is not None:
            names = [field.name for field in fields(_Saved)]
            state = validated(_SAVED, {name: saved[name] for name in names}, "state")
            epoch = state.so_far
            if (set(epoch.tallies), set(epoch.seconds)) != (set(self.parts), set(categories)):
                raise ValueError("so_far must have the sums and seconds of this kind of run")
            self.position, self.epoch = state.position, epoch
            self.elapsed, self.work_done = state.elapsed, state.work_done

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
            tensors |= {f"{name}/{key}": value for key, value in module.state_dict().items()}
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
        saved = _Saved(self.position, self.epoch, self.elapsed, self.work_done)
        state = {**_SAVED.dump_python(saved, by_alias=True), **self.extra_state(), **more}
        return Checkpoint(state, {name: value.detach().cpu() for name, value in tensors.items()})

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


def sgd(
    parameters: Sequence[nn.Parameter],
    lr: float,
    momentum: float,
    weight_decay: float,
    nesterov: bool = False,
) -> torch.optim.SGD:
    """SGD for parameters of which each step may leave some without a gradient."""
    device = parameters[0].device.type
    optimizer = torch.optim.SGD(
        parameters,
        lr,
        momentum,
        weight_decay=weight_decay,
        nesterov=nesterov,
        fused=device in ("cpu", "cuda"),
    )
    optimizer.register_step_pre_hook(_complete_momenta)
    return optimizer


def _complete_momenta(optimizer: torch.optim.Optimizer, *_: object) -> None:
    """Give the first gradient of a parameter a momentum to start from, if others have theirs.

    PyTorch's fused step fails where only some of the parameters that have a gradient have a
    momentum, as with the second sample of a method that samples candidates.
    """
    for group in optimizer.param_groups:
        followed = [weight for weight in group["params"] if weight.grad is not None]
        first = [
            weight
            for weight in followed
            if optimizer.state.get(weight, {}).get("momentum_buffer") is None
        ]
        if group["momentum"] and 0 < len(first) < len(followed):
            for weight in first:
                optimizer.state[weight]["momentum_buffer"] = torch.zeros_like(weight)


def _load_optimizer(
    optimizer: torch.optim.Optimizer,
    parameters: Mapping[str, nn.Parameter],
    tensors: Mapping[str, Tensor],
) -> None:
    keys = _ADAM if isinstance(optimizer, torch.optim.Adam) else _SGD
    owners = {name.rpartition("/")[0] for name in tensors}
    for owner in owners:
        saved = under(owner, tensors)
        if saved.keys() != keys:
            raise ValueError(f"{owner} must have {', '.join(sorted(keys))}, got {list(saved)}")
        step = saved.get("step")
        if step is not None and (step.dim() or not step.is_floating_point()):
            raise ValueError(f"{owner}/step must be a single number")
    for name, tensor in tensors.items():
        owner, key = name.rsplit("/", 1)
        parameter = parameters[owner]
        if key == "step":  # a count, which fused optimizers keep in single precision
            value = tensor.to(parameter.device)
        else:
            value = torch.empty_like(parameter, requires_grad=False).copy_(tensor)
        optimizer.state[parameter][key] = value

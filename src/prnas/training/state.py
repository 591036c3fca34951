"""The state of a search: all that a checkpoint holds, and nothing else."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from prnas.config import SearchConfig
from prnas.nets.relaxation import RELAXATIONS
from prnas.nets.supernet import Supernet, build_supernet
from prnas.space.cell_pools import Pools
from prnas.space.schedule import Cycle
from prnas.training.checkpoint import Checkpoint, prefixed, under
from prnas.training.randomness import random_state, set_random_state, torch_generator

PARTS = ("data", "architecture", "weights", "validation", "saving", "other")


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
    """Where the search stands; `images` counts those of the weights' half in this cycle."""

    cycle: int = 0
    epoch: int = 0
    step: int = 0  # of the epoch
    cycle_step: int = 0
    images: int = 0
    done: bool = False

    def place(self, what: str) -> str:
        """A name for something that happens here, once in a search."""
        return f"{self.cycle}/{self.epoch}/{self.step}/{what}"

    def __str__(self) -> str:
        return f"cycle {self.cycle + 1}, epoch {self.epoch + 1}, step {self.step + 1}"


@dataclass(slots=True)
class EpochSoFar:
    """What the epoch under way has seen."""

    weights: Sums = field(default_factory=Sums)
    architecture: Sums = field(default_factory=Sums)
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    memory: float = 0.0

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


class SearchState:
    """Supernet, optimizers, generators and position of a search."""

    def __init__(
        self,
        config: SearchConfig,
        classes: int,
        input_channels: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.config = config
        self.classes, self.input_channels = classes, input_channels
        self.device, self.dtype = device, dtype
        self.position = Position()
        self.so_far = EpochSoFar()
        self.elapsed = 0.0  # seconds of all epochs before this one
        self.work_done: list[tuple[float, float]] = []  # estimated work and seconds, by epoch
        self.decisions = Random(config.seed)
        names = ("weights", "children", "dropout", "augment weights", "augment architecture")
        self.generators = {name: torch_generator(config.seed, name) for name in names}
        pools = Pools.initial(config.network.nodes, config.space.initial_pool)
        self.supernet = self._build(pools)
        self._start_cycle()

    @property
    def cycle(self) -> Cycle:
        return self.config.schedule.cycles[self.position.cycle]

    def shape(self, cycle: Cycle) -> tuple[int, int]:
        """Cells and channels of the supernet in a cycle."""
        network = self.config.network
        return cycle.cells or network.cells, cycle.channels or network.channels

    def _build(self, pools: Pools) -> Supernet:
        cells, channels = self.shape(self.cycle)
        supernet = build_supernet(
            pools,
            channels,
            cells,
            self.classes,
            input_channels=self.input_channels,
            output=self.config.network.output,
            relaxation=RELAXATIONS[self.config.architecture.relaxation],
            recompute=self.config.compute.recompute,
            generator=self.generators["weights"],
        )
        return supernet.to(self.device, self.dtype)

    def _start_cycle(self) -> None:
        """Optimizers start afresh with every cycle."""
        weights, architecture = self.config.weights, self.config.architecture
        self.supernet.set_skip_dropout(self.cycle.skip_dropout)
        self.weight_parameters = self.supernet.weight_parameters()
        self.architecture_parameters = self.supernet.architecture_parameters()
        fused = self.device.type in ("cpu", "cuda")
        self.weights_optimizer = torch.optim.SGD(
            self.weight_parameters,
            weights.lr,
            weights.momentum,
            weight_decay=weights.weight_decay,
            fused=fused,
        )
        self.architecture_optimizer = torch.optim.Adam(
            self.architecture_parameters,
            architecture.lr,
            architecture.betas,
            weight_decay=architecture.weight_decay,
            fused=fused,
        )

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Within it, time counts for one of `PARTS` of the epoch."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.so_far.seconds[part] += time.perf_counter() - start

    def next_epoch(self) -> None:
        self.position.epoch += 1
        self.position.step = 0
        self.so_far = EpochSoFar()

    def next_cycle(self, change: Any) -> None:
        """Apply a change of the pools; a cycle of another shape starts its network afresh."""
        before = self.shape(self.cycle)
        self.position.cycle += 1
        self.position.epoch = self.position.step = 0
        self.position.cycle_step = self.position.images = 0
        self.so_far = EpochSoFar()
        if self.shape(self.cycle) == before:
            self.supernet.evolve(change, self.generators["children"])
        else:
            self.supernet = self._build(self.supernet.pools.apply(change))
        self._start_cycle()

    def checkpoint(self, more: Mapping[str, Any]) -> Checkpoint:
        """The whole state; `more` is what others add to it."""
        tensors = prefixed("supernet", self.supernet.state_dict())
        names = {id(one): name for name, one in self.supernet.named_parameters()}
        for prefix, optimizer in self._optimizers().items():
            for parameter, values in optimizer.state.items():
                for key, value in values.items():
                    tensors[f"{prefix}/{names[id(parameter)]}/{key}"] = value
        for name, generator in self.generators.items():
            tensors[f"generators/{name}"] = generator.get_state()
        state = {
            "position": asdict(self.position),
            "so_far": asdict(self.so_far),
            "elapsed": self.elapsed,
            "work_done": self.work_done,
            "decisions": random_state(self.decisions),
            "pools": self.supernet.pools.to_json(),
            **more,
        }
        return Checkpoint(state, {name: one.detach().cpu() for name, one in tensors.items()})

    def load(self, checkpoint: Checkpoint) -> None:
        """Go on exactly where the checkpoint was made."""
        state, tensors = checkpoint.state, checkpoint.tensors
        self.position = Position(**state["position"])
        so_far = dict(state["so_far"])
        self.so_far = EpochSoFar(
            Sums(**so_far["weights"]),
            Sums(**so_far["architecture"]),
            so_far["seconds"],
            so_far["memory"],
        )
        self.elapsed = state["elapsed"]
        self.work_done = [(work, seconds) for work, seconds in state["work_done"]]
        set_random_state(self.decisions, state["decisions"])
        self.supernet = self._build(Pools.from_json(state["pools"]))
        self.supernet.load_state_dict(under("supernet", tensors))
        self._start_cycle()
        parameters = dict(self.supernet.named_parameters())
        for prefix, optimizer in self._optimizers().items():
            _load_optimizer(optimizer, parameters, under(prefix, tensors))
        for name, generator in self.generators.items():
            generator.set_state(tensors[f"generators/{name}"])

    def _optimizers(self) -> dict[str, torch.optim.Optimizer]:
        return {
            "weights_optimizer": self.weights_optimizer,
            "architecture_optimizer": self.architecture_optimizer,
        }


def _load_optimizer(
    optimizer: torch.optim.Optimizer,
    parameters: Mapping[str, nn.Parameter],
    tensors: Mapping[str, Tensor],
) -> None:
    for name, tensor in tensors.items():
        owner, key = name.rsplit("/", 1)
        parameter = parameters[owner]
        if key == "step":  # a count, which fused optimizers keep in single precision
            value = tensor.to(parameter.device)
        else:
            value = torch.empty_like(parameter, requires_grad=False).copy_(tensor)
        optimizer.state[parameter][key] = value

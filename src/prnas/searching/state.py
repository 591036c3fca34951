"""The state of a search."""

from collections.abc import Mapping
from random import Random
from typing import Any

import torch
from torch import nn

from prnas.config.search import SearchConfig
from prnas.nets.relaxation import RELAXATIONS
from prnas.nets.supernet import Supernet, build_supernet
from prnas.runs.generators import random_state, set_random_state
from prnas.runs.state import RunState, sgd
from prnas.space.pools import Pools
from prnas.space.schedule import Cycle


class SearchState(RunState):
    """Supernet, optimizers, generators and position of a search."""

    step_parts = ("weights", "architecture")
    parts = ("data", "architecture", "weights", "validation", "saving", "other")
    generator_names = ("weights", "children", "dropout", "augment weights", "augment architecture")

    def __init__(
        self,
        config: SearchConfig,
        classes: int,
        input_channels: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        super().__init__(config.seed)
        self.config = config
        self.classes, self.input_channels = classes, input_channels
        self.device, self.dtype = device, dtype
        self.decisions = Random(config.seed)
        pools = Pools.initial(config.network.nodes, config.space.initial_pool)
        self.supernet = self._build(pools)
        self._start_cycle()

    @property
    def module(self) -> nn.Module:
        return self.supernet

    def modules(self) -> Mapping[str, nn.Module]:
        return {"supernet": self.supernet}

    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        return {
            "weights_optimizer": self.weights_optimizer,
            "architecture_optimizer": self.architecture_optimizer,
        }

    @property
    def where(self) -> str:
        position = self.position
        return f"cycle {position.cycle + 1}, epoch {position.epoch + 1}, step {position.step + 1}"

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
        self.weights_optimizer = sgd(
            self.weight_parameters, weights.lr, weights.momentum, weights.weight_decay
        )
        self.architecture_optimizer = torch.optim.Adam(
            self.architecture_parameters,
            architecture.lr,
            architecture.betas,
            weight_decay=architecture.weight_decay,
            fused=self.device.type in ("cpu", "cuda"),
        )

    def next_cycle(self, change: Any) -> None:
        """Apply a change of the pools; a cycle of another shape starts its network afresh."""
        before = self.shape(self.cycle)
        self.position.cycle += 1
        self.position.epoch = self.position.step = 0
        self.position.cycle_step = self.position.images = 0
        self.so_far = self._new_epoch()
        if self.shape(self.cycle) == before:
            self.supernet.evolve(change, self.generators["children"])
        else:
            self.supernet = self._build(self.supernet.pools.apply(change))
        self._start_cycle()

    def _own(self) -> dict[str, Any]:
        return {
            "decisions": random_state(self.decisions),
            "pools": self.supernet.pools.to_json(),
        }

    def _load_own(self, state: Mapping[str, Any]) -> None:
        set_random_state(self.decisions, state["decisions"])
        self.supernet = self._build(Pools.from_json(state["pools"]))
        self._start_cycle()

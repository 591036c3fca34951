"""The state of a search."""

from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from prnas.config.search import SearchConfig
from prnas.data.dataset import DataSet
from prnas.nets.relaxations import make_relaxation
from prnas.nets.supernet import Supernet, build_supernet
from prnas.runs.processes import Processes
from prnas.runs.state import Position, RunState, SavedState, sgd
from prnas.space.change import Change
from prnas.space.genotype import Genotype
from prnas.space.pools import Pools
from prnas.space.schedule import Cycle

if TYPE_CHECKING:
    from prnas.searching.supernet_scorer import CellChoice


class SearchState(RunState):
    """Supernet, optimizers, generators and position of a search."""

    parts = ("weights", "architecture")
    time_categories = ("data", "architecture", "weights", "validation", "saving", "other")
    generator_names = ("weights", "children", "dropout", "augment weights", "augment architecture")

    def __init__(
        self, config: SearchConfig, data: DataSet, processes: Processes, saved: SavedState | None
    ) -> None:
        super().__init__(config, saved)
        self.config, self.data, self.processes = config, data, processes
        self.decisions = Random(config.seed)
        self.genotype: Genotype | None = None  # after the last cycle
        self.derived: Genotype | None = None  # what the last epoch that could would have derived
        self.measured: Genotype | None = None  # what the last cycle's measurements would have
        self.choice: CellChoice | None = None  # The searcher's choice, after the last epoch.
        self.saved_choice: dict[str, Any] | None = saved.get("choice") if saved else None
        network = config.network
        pools = Pools.initial(network.nodes, config.space.initial_pool, network.shape)
        if saved is not None:
            if self.position.epoch > self.cycle.epochs:
                raise ValueError(f"the cycle has {self.cycle.epochs} epochs")
            version, numbers, gauss = saved["decisions"]
            self.decisions.setstate((version, tuple(numbers), gauss))
            pools = Pools.from_json(saved["pools"])
            if (derived := saved.get("derived")) is not None:
                self.derived = Genotype.from_json(derived)
            if (measured := saved.get("measured")) is not None:
                self.measured = Genotype.from_json(measured)
            if self.position.done:
                self.genotype = Genotype.from_json(saved["genotype"])
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

    def shape(self, cycle: Cycle) -> tuple[int, int, int]:
        """Cells and channels of the supernet in a cycle, and the divisor of partial channels."""
        network = self.config.network
        partial = cycle.partial_channels or network.partial_channels
        return cycle.cells or network.cells, cycle.channels or network.channels, partial

    def _build(self, pools: Pools) -> Supernet:
        cells, channels, partial = self.shape(self.cycle)
        supernet = build_supernet(
            pools,
            channels,
            cells,
            self.data.num_classes,
            input_channels=self.data.shape[0],
            output=self.config.network.output,
            relaxation=make_relaxation(self.config.architecture),
            recompute=self.config.compute.recompute,
            partial_channels=partial,
            generator=self.generators["weights"],
        )
        return supernet.to(self.processes.device, self.processes.dtype)

    def _start_cycle(self) -> None:
        """Optimizers start afresh with every cycle."""
        weights, architecture = self.config.weights, self.config.architecture
        self.supernet.set_skip_dropout(self.cycle.skip_dropout_in(self.position.epoch))
        self.weight_parameters = self.supernet.weight_parameters()
        self.architecture_parameters = self.supernet.architecture_parameters()
        self.weights_optimizer = sgd(
            self.weight_parameters,
            weights.lr,
            weights.momentum,
            weights.weight_decay,
            weights.nesterov,
        )
        self.architecture_optimizer = torch.optim.Adam(
            self.architecture_parameters,
            0.0 if architecture.lr == "auto" else architecture.lr,  # a step sets it
            architecture.betas,
            weight_decay=architecture.weight_decay,
            fused=self.processes.device.type in ("cpu", "cuda"),
        )

    def next_cycle(self, change: Change, pools: Pools) -> None:
        """Change to `pools`; a cycle of another shape starts its network afresh."""
        before = self.shape(self.cycle)
        self.position = Position(self.position.cycle + 1)
        self.epoch = self._new_epoch()
        if self.shape(self.cycle) == before:
            self.supernet.evolve(change, self.generators["children"], pools)
        else:
            self.supernet = self._build(pools)
        self._start_cycle()

    def extra_state(self) -> dict[str, Any]:
        choice = self.choice.state() if self.choice else self.saved_choice
        return {
            **({"choice": choice} if choice else {}),
            "decisions": self.decisions.getstate(),
            "pools": self.supernet.pools.to_json(),
            "genotype": self.genotype.to_json() if self.genotype else None,
            "derived": self.derived.to_json() if self.derived else None,
            **({"measured": self.measured.to_json()} if self.measured else {}),
        }

"""The state of a final network's training."""

import copy
from collections.abc import Mapping
from typing import Any

import torch
from pydantic import TypeAdapter
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from prnas.config.retrain import RetrainConfig
from prnas.data.dataset import DataSet
from prnas.io.reading import validated
from prnas.models.model import TrainedNetwork
from prnas.nets.network import Network, build
from prnas.nets.resnet import build_resnet
from prnas.retraining.best_network import BestNetwork
from prnas.retraining.start import take_weights
from prnas.runs.processes import Processes
from prnas.runs.records import Score, StartedFrom, TrainedRecord
from prnas.runs.state import RunState, SavedState, sgd


class RetrainState(RunState):
    """Network, optimizer, moving average, generators and position of a training."""

    parts = ("training",)
    time_categories = ("data", "training", "testing", "saving", "other")
    generator_names = ("weights", "drop path", "augment training")

    def __init__(
        self, config: RetrainConfig, data: DataSet, processes: Processes, saved: SavedState | None
    ) -> None:
        super().__init__(config, saved)
        training = config.training
        built = _built(config, data, self.generators["weights"])
        self.started_from: StartedFrom | None = None
        if saved is None:  # Otherwise all that came from there is in the checkpoint.
            self.started_from = take_weights(built, config, data)
        elif saved.get("started_from") is not None:
            self.started_from = StartedFrom(**saved["started_from"])
        self.network: TrainedNetwork = built.to(
            processes.device, processes.dtype, memory_format=torch.channels_last
        )  # pyright: ignore[reportCallIssue]
        self.parameters = list(self.network.parameters())
        self.optimizer = sgd(self.parameters, training.lr, training.momentum, training.weight_decay)
        self.averaged: AveragedModel | None = None
        if training.average_decay is not None:
            self.averaged = AveragedModel(
                self.network,
                multi_avg_fn=get_ema_multi_avg_fn(training.average_decay),
                use_buffers=True,
            )
        self.best: BestNetwork | None = None
        if training.keep == "best":
            self.best = BestNetwork(copy.deepcopy(self.current_network).requires_grad_(False))
        self.errors: list[float] = []  # test errors of the last epochs
        self.validation: Score | None = None  # The score of the last validated epoch.
        self.trained: TrainedRecord | None = None  # after the last epoch
        if saved is not None:
            self.errors = validated(TypeAdapter(list[float]), saved["errors"], "errors")
            if saved.get("validation") is not None:
                self.validation = Score(**saved["validation"])
            if self.best is not None:
                self.best.load_state(saved["kept"])
            if saved["trained"] is not None:
                self.trained = TrainedRecord(**saved["trained"])
            self._check_position(training.epochs)

    def _check_position(self, epochs: int) -> None:
        position = self.position
        if position.epoch > epochs:
            raise ValueError(f"the training has {epochs} epochs")
        has_results = self.trained is not None
        measured = self.errors if self.best is None else self.best.epoch is not None
        if not has_results and (position.done or (position.epoch == epochs and not measured)):
            raise ValueError("the run is said to be done, but has no results")

    @property
    def module(self) -> nn.Module:
        return self.network

    def forward(self, images: Tensor, drop_path: float) -> tuple[Tensor, Tensor | None]:
        """Logits in training, and those of the auxiliary head if there is one."""
        if not isinstance(self.network, Network):
            return self.network(images), None
        self.network.drop_path_probability = drop_path
        out = self.network(images, self.generators["drop path"])
        return out if isinstance(out, tuple) else (out, None)

    @property
    def current_network(self) -> nn.Module:
        """The network as trained so far: the moving average if there is one."""
        return self.network if self.averaged is None else self.averaged.module

    @property
    def final_network(self) -> nn.Module:
        """The network that is tested and saved at the end: the best so far if one is chosen."""
        return self.current_network if self.best is None else self.best.network

    def modules(self) -> Mapping[str, nn.Module]:
        best = None if self.best is None else self.best.network
        modules = {"network": self.network, "averaged": self.averaged, "kept": best}
        return {name: module for name, module in modules.items() if module is not None}

    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        return {"optimizer": self.optimizer}

    @property
    def where(self) -> str:
        return f"epoch {self.position.epoch + 1}, step {self.position.step + 1}"

    def extra_state(self) -> dict[str, Any]:
        trained = self.trained.model_dump() if self.trained else None
        state: dict[str, Any] = {"errors": self.errors, "trained": trained}
        if self.started_from is not None:
            state["started_from"] = self.started_from.model_dump()
        if self.validation is not None:
            state["validation"] = self.validation.model_dump()
        if self.best is not None:
            state["kept"] = self.best.state()
        return state


def _built(config: RetrainConfig, data: DataSet, generator: torch.Generator) -> TrainedNetwork:
    """The network with fresh weights."""
    network = config.network
    sizes, channels = (network.channels, network.cells, data.num_classes), data.shape[0]
    if config.genotype is None:
        return build_resnet(*sizes, input_channels=channels, generator=generator)
    return build(
        config.genotype,
        *sizes,
        stem=network.stem,
        auxiliary=network.auxiliary_weight > 0,
        output=network.output,
        input_channels=channels,
        generator=generator,
    )

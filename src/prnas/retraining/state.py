"""The state of a final network's training."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from prnas.config.retrain import RetrainConfig
from prnas.nets.network import Network, build
from prnas.runs.checked_state import finite
from prnas.runs.state import RunState, sgd


class RetrainState(RunState):
    """Network, optimizer, moving average, generators and position of a training."""

    parts = ("training",)
    time_categories = ("data", "training", "testing", "saving", "other")
    generator_names = ("weights", "drop path", "augment training")

    def __init__(
        self,
        config: RetrainConfig,
        classes: int,
        input_channels: int,
        device: torch.device,
        dtype: torch.dtype,
        saved: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(config.seed, saved)
        network, training = config.network, config.training
        self.network: Network = build(
            config.genotype,
            network.channels,
            network.cells,
            classes,
            stem=network.stem,
            auxiliary=network.auxiliary_weight > 0,
            output=network.output,
            input_channels=input_channels,
            generator=self.generators["weights"],
        ).to(device, dtype, memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        self.parameters = list(self.network.parameters())
        self.optimizer = sgd(self.parameters, training.lr, training.momentum, training.weight_decay)
        self.averaged: AveragedModel | None = None
        if training.average_decay is not None:
            self.averaged = AveragedModel(
                self.network,
                multi_avg_fn=get_ema_multi_avg_fn(training.average_decay),
                use_buffers=True,
            )
        self.errors: list[float] = []  # test errors of the last epochs
        if saved is not None:
            self.errors = [finite("a test error", error) for error in saved["errors"]]

    @property
    def module(self) -> nn.Module:
        return self.network

    @property
    def final_network(self) -> nn.Module:
        """The network that is tested and, at the end, saved: the moving average if there is one."""
        return self.network if self.averaged is None else self.averaged.module

    def modules(self) -> Mapping[str, nn.Module]:
        found: dict[str, nn.Module] = {"network": self.network}
        if self.averaged is not None:
            found["averaged"] = self.averaged
        return found

    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        return {"optimizer": self.optimizer}

    @property
    def where(self) -> str:
        return f"epoch {self.position.epoch + 1}, step {self.position.step + 1}"

    def extra_state(self) -> dict[str, Any]:
        return {"errors": self.errors}

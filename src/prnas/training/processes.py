"""Several processes as one: a thin layer over Lightning Fabric.

Every process holds the same state and takes the same decisions. Gradients are averaged, so that two
processes of batch b do what one of batch 2b does, but for batch normalisation: its statistics are
those of each process's own images, as usual in data-parallel training; running statistics are
averaged after every step.
"""

import logging
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor

from prnas.config import ComputeConfig
from prnas.errors import UserError


class Processes:
    """The processes of a run; with one, every method is a no-op."""

    def __init__(self, compute: ComputeConfig) -> None:
        self.fabric = _launched(compute)
        self.device: torch.device = self.fabric.device
        self.rank: int = self.fabric.global_rank
        self.size: int = self.fabric.world_size
        self.local_size = int(os.environ.get("LOCAL_WORLD_SIZE", self.size))
        self.precision = compute.precision
        self.dtype = torch.float64 if compute.precision == "64-true" else torch.float32

    @property
    def told(self) -> dict[str, Any]:
        """What a run is computed on, for its records."""
        return {
            "device": str(self.device),
            "processes": self.size,
            "precision": self.precision,
        }

    def autocast(self) -> AbstractContextManager[Any]:
        return self.fabric.autocast()

    def most(self, values: Sequence[float]) -> list[float]:
        """The greatest of each value over all processes."""
        if self.size == 1:
            return list(values)
        given = torch.tensor(values, dtype=torch.float64, device=self.device)
        return self.fabric.all_reduce(given, reduce_op="max").tolist()  # pyright: ignore

    def sum(self, values: Sequence[float]) -> list[float]:
        if self.size == 1:
            return list(values)
        given = torch.tensor(values, dtype=torch.float64, device=self.device)
        return self.fabric.all_reduce(given, reduce_op="sum").tolist()  # pyright: ignore

    @torch.no_grad()
    def average(self, tensors: Sequence[Tensor]) -> None:
        """Replace tensors by their means over all processes, in one exchange."""
        floating = [one for one in tensors if one.is_floating_point()]
        if self.size == 1 or not floating:
            return
        flat = torch.cat([one.reshape(-1) for one in floating])
        mean = self.fabric.all_reduce(flat, reduce_op="mean")
        assert isinstance(mean, Tensor)
        parts = mean.split([one.numel() for one in floating])
        for part, one in zip(parts, floating, strict=True):
            one.copy_(part.view_as(one))

    def broadcast(self, value: Any) -> Any:
        """The first process's value, on all of them."""
        return value if self.size == 1 else self.fabric.broadcast(value)

    def barrier(self) -> None:
        if self.size > 1:
            self.fabric.barrier()

    def check_equal(self, tensors: Sequence[Tensor], what: str) -> None:
        """Raise if the processes do not hold the same values: a bug, or a broken machine."""
        if self.size == 1:
            return
        total = sum(float(one.detach().cpu().double().sum()) for one in tensors)
        most, least = self.most([total, -total])
        if most != -least:
            raise RuntimeError(f"the processes disagree about the {what}")


def _launched(compute: ComputeConfig) -> Fabric:
    devices, num_nodes = compute.devices, 1
    # It announces every process on standard error; what matters, the display tells.
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    if "TORCHELASTIC_RUN_ID" in os.environ:  # torchrun has started all processes itself
        devices = int(os.environ["LOCAL_WORLD_SIZE"])
        num_nodes = int(os.environ["WORLD_SIZE"]) // devices
    try:
        fabric = Fabric(
            accelerator=compute.accelerator,
            devices=devices,
            num_nodes=num_nodes,
            strategy="ddp" if devices * num_nodes > 1 else "auto",
            precision="bf16-mixed" if compute.precision == "bf16-mixed" else "32-true",
        )
        fabric.launch()
    except Exception as error:  # Fabric raises its own and PyTorch's kinds
        said = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(
            f"cannot use accelerator '{compute.accelerator}' with {devices} device(s): {said}"
        ) from None
    if fabric.device.type == "mps" and compute.precision == "64-true":
        raise UserError("this accelerator has no double precision: use --precision 32-true")
    return fabric

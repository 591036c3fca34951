"""Several processes as one: a thin layer over Lightning Fabric.

Every process holds the same state and takes the same decisions. Gradients are averaged, so that two
processes of batch b do what one of batch 2b does, but for batch normalisation: its statistics are
those of each process's own images, as usual in data-parallel training; running statistics are
averaged after every step.
"""

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar

import torch
from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy
from torch import Tensor
from torch import distributed as dist

from prnas.config.sections import ComputeConfig
from prnas.io.errors import FormatError, UserError
from prnas.io.memory import is_out_of_memory
from prnas.models.inference import check_accelerator
from prnas.runs.launcher import Siblings, start_siblings

R = TypeVar("R")
STARTING = 10.0  # minutes that processes have to find each other: they import, on a slow disk


class LostProcess(UserError):  # noqa: N818 - no mistake of its own
    """Another process of the run ended, or does not answer."""


class Processes:
    """The processes of a run; with one, every method is a no-op."""

    def __init__(self, compute: ComputeConfig) -> None:
        self.fabric, self.siblings = _launched(compute)
        self._minutes = compute.timeout_minutes
        self.device: torch.device = self.fabric.device
        self.rank: int = self.fabric.global_rank
        self.size: int = self.fabric.world_size
        self.local_size = int(os.environ.get("LOCAL_WORLD_SIZE", self.size))
        # Fabric's, for mixed precision with float16: it keeps small gradients from becoming zero.
        self.scaler: torch.amp.GradScaler | None = getattr(self.fabric._precision, "scaler", None)
        self.dtype = torch.float64 if compute.precision == "64-true" else torch.float32

    def autocast(self) -> AbstractContextManager[Any]:
        return self.fabric.autocast()

    def scaled(self, loss: Tensor) -> Tensor:
        """The loss times the scale of mixed precision, to differentiate."""
        return loss if self.scaler is None else self.scaler.scale(loss)

    @property
    def can_scale_down(self) -> bool:
        """Whether gradients that are not finite may be so only for their scale."""
        return self.scaler is not None and self.scaler.get_scale() > 1

    def begin(self, hint: str = "") -> None:
        """A run is under way, until `done`. `hint`: how to go on with it, should it end early."""
        self.siblings.hint = hint
        self.siblings.under_way.set()

    def done(self, failed: bool) -> None:
        """The run is over. What failed here must not leave others waiting for this process."""
        self.siblings.under_way.clear()
        if failed:
            self.siblings.end()

    def maximum(self, values: Sequence[float]) -> list[float]:
        """The greatest of each value over all processes."""
        return self._reduced(values, "max")

    def sum(self, values: Sequence[float]) -> list[float]:
        return self._reduced(values, "sum")

    def _reduced(self, values: Sequence[float], how: str) -> list[float]:
        if self.size == 1:
            return list(values)
        given = torch.tensor(values, dtype=torch.float64, device=self.device)
        self._exchange(lambda group: self.fabric.all_reduce(given, group, how))
        return given.tolist()

    @torch.no_grad()
    def average(self, tensors: Sequence[Tensor], agree: Callable[[], None] = lambda: None) -> None:
        """Replace tensors by their means over all processes, in one exchange.

        `agree` is called once the memory for it is there: it may exchange something first.
        """
        floating = [tensor for tensor in tensors if tensor.is_floating_point()]
        if self.size == 1 or not floating:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in floating])
        agree()
        self._exchange(lambda group: self.fabric.all_reduce(flat, group, "mean"))
        means = flat.split([tensor.numel() for tensor in floating])
        for mean, tensor in zip(means, floating, strict=True):
            tensor.copy_(mean.view_as(tensor))

    def broadcast(self, value: Any) -> Any:
        """The first process's value, on all of them."""
        if self.size == 1:
            return value
        box = [value]
        self._exchange(lambda group: dist.broadcast_object_list(box, 0, group))
        return box[0]

    def from_first(self, act: Callable[[], R]) -> R:
        """Run `act` in the first process; return its value, or raise its failure, in all."""
        value, failure = None, None
        if self.rank == 0:
            try:
                value = act()
            except (UserError, FormatError, OSError) as error:
                failure = str(error)
        value, failure = self.broadcast((value, failure))
        if failure is not None:
            raise UserError(failure)
        return value

    def barrier(self) -> None:
        self.maximum([0.0])

    def _exchange(self, act: Callable[[Any], R]) -> R:
        """Do what all processes do together; a `LostProcess` if one of them is gone."""
        try:
            return act(_group(self._minutes))
        except RuntimeError as error:
            if is_out_of_memory(error):
                raise
            late = any(text in str(error).lower() for text in ("timed out", "timeout"))
            waited = f"{self._minutes:g} minutes (compute.timeout_minutes)" if late else None
            raise LostProcess(self.siblings.message(waited)) from None

    def check_equal(self, tensors: Sequence[Tensor], what: str) -> None:
        """Raise if the processes do not hold the same values: a bug, or a broken machine."""
        if self.size == 1:
            return
        total = sum(float(tensor.detach().cpu().double().sum()) for tensor in tensors)
        most, least = self.maximum([total, -total])
        if most != -least:
            raise RuntimeError(f"the processes disagree about the {what}")


@cache
def _group(minutes: float) -> Any:
    """All processes, in exchanges that wait so long for one another."""
    return dist.new_group(timeout=timedelta(minutes=minutes))


def _launched(compute: ComputeConfig) -> tuple[Fabric, Siblings]:
    check_accelerator(compute.accelerator)
    on_cpu = compute.accelerator == "cpu" or not torch.accelerator.is_available()
    if compute.precision == "16-mixed" and on_cpu:
        raise UserError("mixed precision with float16 needs a GPU: on a CPU, use bf16-mixed")
    devices, num_nodes = compute.devices, 1
    # It announces every process on standard error; what matters, the display tells.
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    if "TORCHELASTIC_RUN_ID" in os.environ:  # torchrun has started all processes itself
        devices = int(os.environ["LOCAL_WORLD_SIZE"])
        num_nodes = int(os.environ["WORLD_SIZE"]) // devices
    others: Siblings | None = None
    try:
        strategy = None
        if devices * num_nodes > 1:
            minutes = max(STARTING, compute.timeout_minutes)
            strategy = DDPStrategy(timeout=timedelta(minutes=minutes))
        fabric = Fabric(
            accelerator=compute.accelerator,
            devices=devices,
            num_nodes=num_nodes,
            strategy=strategy or "auto",
            precision="32-true" if compute.precision == "64-true" else compute.precision,
        )
        others = start_siblings(strategy and strategy.cluster_environment, devices)
        others.under_way.set()
        fabric.launch()
        others.joined = True
        if strategy is not None:
            _group(compute.timeout_minutes)
    except Exception as error:  # Fabric raises its own and PyTorch's kinds
        if others is not None:
            others.under_way.clear()
            others.end()
        said = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(
            f"cannot use accelerator '{compute.accelerator}' with {devices} device(s): {said}"
        ) from None
    if fabric.device.type == "mps" and compute.precision == "64-true":
        raise UserError("this accelerator has no double precision: use --precision 32-true")
    return fabric, others

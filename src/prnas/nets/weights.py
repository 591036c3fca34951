"""Weights from a generator: the same seed gives the same weights, whatever ran before."""

import math
from collections.abc import Callable
from itertools import chain
from typing import TypeVar

import torch
from torch import Tensor, nn

M = TypeVar("M", bound=nn.Module)


def construct(make: Callable[[], M], generator: torch.Generator) -> M:
    """The module that `make` builds, its weights drawn from `generator` alone.

    It is built without storage first, so that PyTorch's own initialisation, which draws from the
    global generator, never runs.
    """
    with torch.device("meta"):
        module = make()
    module.to_empty(device="cpu")
    initialize(module, generator)
    return module


def initialize(module: nn.Module, generator: torch.Generator) -> None:
    """PyTorch's default initialisation, in the order of the modules, from `generator`.

    A module that has parameters or buffers of another kind says its own by a method `initialize`.
    """
    for layer in module.modules():
        if own := getattr(layer, "initialize", None):
            own(generator)
        elif isinstance(layer, nn.Conv2d | nn.Linear):
            draw_weight(layer.weight, generator)
            if layer.bias is not None:
                bound = 1 / math.sqrt(layer.weight[0].numel())
                nn.init.uniform_(layer.bias, -bound, bound, generator=generator)
        elif isinstance(layer, nn.BatchNorm2d):
            layer.reset_parameters()  # constants
        elif any(
            True for _ in chain(layer.parameters(recurse=False), layer.buffers(recurse=False))
        ):
            name = type(layer).__name__
            raise TypeError(f"no initialisation is known for {name}: no initialize(generator)")


def draw_weight(weight: Tensor, generator: torch.Generator) -> None:
    """Fill a weight as `nn.Conv2d` and `nn.Linear` do."""
    nn.init.kaiming_uniform_(weight, a=math.sqrt(5), generator=generator)

"""The size of a real network as PyTorch counts it, and names of tensors in the plain one."""

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from prnas.space.network_size import NetworkSize


def measured(network: nn.Module, image: torch.Tensor) -> NetworkSize:
    """What PyTorch says of a real network."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network(image)
    return NetworkSize(
        sum(weight.numel() for weight in network.parameters()), counter.get_total_flops() // 2
    )


def as_plain(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """A network's tensors by the names that the plain one with an auxiliary head has for them."""
    prefix = {name: "" if name.startswith("auxiliary.") else "network." for name in tensors}
    return {prefix[name] + name: tensor for name, tensor in tensors.items()}

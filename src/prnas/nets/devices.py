"""Sending tensors to the device that computes."""

import torch
from torch import Tensor

# Devices whose driver has read ordinary (not pinned) memory before an asynchronous copy of it
# returns. On MPS such copies may read memory that is used again; others were not looked into.
ASYNCHRONOUS = ("cuda",)


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on a device; where that is safe, the host does not wait for the device."""
    return tensor.to(device, non_blocking=device.type in ASYNCHRONOUS)

"""Zero-cost proxies: what a network says of itself before any training.

No more is claimed of them than what is measured: `python -m benchmarks.proxies` compares them, and
parameters and MACs beside them, with the truth of NAS-Bench-201. Both work on the networks of
`plain`, at their first weights.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

_RECTIFIERS = (torch.ops.aten.relu.default, torch.ops.aten.relu_.default)


class _Rectified(TorchDispatchMode):
    """Sees what every ReLU gives, however it was called."""

    def __init__(self, see: Callable[[Tensor], None]) -> None:
        super().__init__()
        self._see = see

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in _RECTIFIERS:
            self._see(result)
        return result


@torch.no_grad()
def nwot(network: nn.Module, images: Tensor) -> float:
    """NWOT (Mellor et al., 2021), a measure of how well ReLUs tell images apart.

    It is the log determinant of the matrix that counts, for each pair of images, at how many places
    their ReLUs are both on or both off; with the statistics of these images. Networks that cannot
    tell two images apart have minus infinity.
    """
    matrix = torch.zeros(len(images), len(images), dtype=torch.float64, device=images.device)

    def see(values: Tensor) -> None:
        on = (values > 0).flatten(1).double()
        matrix.add_(on @ on.T + (1 - on) @ (1 - on).T)

    network.train()
    with _Rectified(see):
        network(images)
    sign, log = torch.linalg.slogdet(matrix)
    return float(log) if sign > 0 else -math.inf


def synflow(network: nn.Module, shape: tuple[int, int, int]) -> float:
    """The flow through a network whose weights are all positive (Tanaka et al., 2020), as a log.

    The sum of every weight times the slope of the output by it, for an image of ones, where batch
    normalisation does nothing: that of a new network in evaluation. Minus infinity if nothing
    flows. The network is left like that, with the absolute values of its weights.
    """
    network.double().eval()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
    weights = [
        module.weight for module in network.modules() if isinstance(module, nn.Conv2d | nn.Linear)
    ]
    with torch.no_grad():
        for weight in network.parameters():
            weight.abs_()
    image = torch.ones(1, *shape, dtype=torch.float64, device=weights[0].device)
    slopes = torch.autograd.grad(network(image).sum(), weights, allow_unused=True)
    flow = sum(
        float((weight.detach() * slope).sum())
        for weight, slope in zip(weights, slopes, strict=True)
        if slope is not None
    )
    return math.log(flow) if flow > 0 else -math.inf

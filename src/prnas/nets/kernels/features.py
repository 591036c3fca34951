"""Features of a source state, each computed once for all the edges that leave it."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from prnas.nets.kernels.layouts import every_second, split_phases


class Feature(NamedTuple):
    """What a candidate reads of a state: a name, and a number where the name needs one."""

    name: str
    number: int = 0


RAW = Feature("raw")
RELU = Feature("relu")
EVERY_SECOND = Feature("every second")  # pixel of the ReLU, both ways
FACTORIZED = Feature("factorized")  # the two images that a factorized reduction reads


class StateFeatures:
    """A state, and its features as they are asked for.

    `other` makes what is not a function of the state alone: pools with their BN, and so on.
    """

    def __init__(self, x: Tensor, other: Callable[[Tensor, Feature], Tensor]) -> None:
        self.x, self.other = x, other
        self.made: dict[Feature, Tensor] = {}

    def __getitem__(self, feature: Feature) -> Tensor:
        if feature not in self.made:
            self.made[feature] = self._make(feature)
        return self.made[feature]

    def _make(self, feature: Feature) -> Tensor:
        match feature.name:
            case "raw":
                return self.x
            case "relu":
                return F.relu(self.x)
            case "every second":
                return every_second(self[RELU])
            case "factorized":
                shifted = F.pad(self[RELU], (-1, 1, -1, 1))
                return torch.cat([self[EVERY_SECOND], every_second(shifted)], dim=1)
            case "phases":
                return split_phases(self[RELU], feature.number)
            case _:
                return self.other(self.x, feature)

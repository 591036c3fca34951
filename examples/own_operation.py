"""An operation of one's own with a morphism: a separable convolution with squeeze-and-excitation.

Squeeze-and-excitation (Hu et al., "Squeeze-and-Excitation Networks", 2018) weighs the channels of
an image by what all of its pixels say together. The morphism gives it twice as many hidden units.
"""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Self

import torch
from torch import Tensor, nn

import prnas
from prnas.nets import inheritance, operations
from prnas.space.layer_size import NetworkSize, Pixels, conv_size, halved, pointwise_bn_size
from prnas.space.morphisms import Morphism
from prnas.space.operations import Operation, checked_int

TINY = Path(__file__).with_name("tiny.yaml")
SPACE = "space.initial_pool=[skip, max 3x3, conv 3x3, excited 3x3 r8]"
TRAINING = ["training.epochs=1", "network.cells=3", "network.channels=4", "data.images=160"]


@dataclass(frozen=True, slots=True)
class Excited(Operation):
    """What it is: its parameters, its name for people and files, its cost and size."""

    category = "excited"
    rank = 10
    labels = re.compile(r"excited 3x3 r([0-9]{1,3})")
    examples = ("excited 3x3 r8",)
    type: Literal["excited"] = field(default="excited", kw_only=True, repr=False, compare=False)
    reduction: int

    def __post_init__(self) -> None:
        checked_int("reduction", self.reduction)

    @property
    def label(self) -> str:
        return f"excited 3x3 r{self.reduction}"

    @classmethod
    def from_match(cls, match: re.Match[str]) -> Self:
        return cls(int(match[1]))

    @property
    def cost(self) -> float:
        return 1.5

    def size(self, channels: int, pixels: Pixels, stride: int) -> NetworkSize:
        out = halved(pixels) if stride == 2 else pixels
        hidden = hidden_units(channels, self.reduction)
        separable = conv_size(9 * channels, out) + pointwise_bn_size(channels, channels, out)
        return separable + conv_size(2 * channels * hidden, (1, 1)) + NetworkSize(hidden + channels)


def hidden_units(channels: int, reduction: int) -> int:
    return max(1, channels // reduction)


class ExcitedConv(nn.Module):
    """What it computes: ReLU, depthwise, pointwise, BN, then a weight for each channel."""

    def __init__(self, c: int, stride: int, reduction: int) -> None:
        super().__init__()
        hidden = hidden_units(c, reduction)
        self.depthwise = nn.Conv2d(c, c, 3, stride, padding=1, groups=c, bias=False)
        self.pointwise = nn.Conv2d(c, c, 1, bias=False)
        self.bn = nn.BatchNorm2d(c)
        self.squeeze = nn.Conv2d(c, hidden, 1)
        self.excite = nn.Conv2d(hidden, c, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.bn(self.pointwise(self.depthwise(x.relu())))
        mean = x.mean(dim=(2, 3), keepdim=True)
        return x * self.excite(self.squeeze(mean).relu()).sigmoid()


HALVE_REDUCTION = Morphism(
    "halve reduction",
    Excited,
    lambda excited, limits: excited.reduction % 2 == 0,
    lambda excited: replace(excited, reduction=excited.reduction // 2),
)


def halve_reduction(child: ExcitedConv, parent: ExcitedConv, generator: torch.Generator) -> None:
    """How weights follow the morphism: what reads the new hidden units is zero at first."""
    child.excite.weight.zero_()
    inherited = parent.state_dict()
    for name, weight in child.state_dict().items():
        weight[tuple(slice(size) for size in inherited[name].shape)] = inherited[name]


operations.register(Excited, ExcitedConv)
inheritance.register(HALVE_REDUCTION, halve_reduction)

if __name__ == "__main__":
    result = prnas.search(TINY, overrides=[SPACE])
    print(result.genotype)
    again = prnas.Genotype.loads(result.genotype.dumps())
    trained = prnas.retrain(again, overrides=TRAINING)
    print(f"test error after one epoch: {trained.test_error:.0%}")

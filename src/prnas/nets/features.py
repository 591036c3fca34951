"""Features of a cell's states: candidates' inputs, each computed once for all that read it."""

from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from prnas.nets.kernels.batch_norm import recomputed
from prnas.nets.kernels.layouts import every_second, split_phases
from prnas.nets.network import mask
from prnas.nets.operations import ReluFirst, pool

if TYPE_CHECKING:
    from prnas.nets.search_cell import SearchCell


FeatureName = Literal[
    "raw", "relu", "every second", "factorized", "phases", "max", "avg", "rest", "dropped", "module"
]


class Feature(NamedTuple):
    """The name of a feature of a state, with numbers where the name needs them."""

    name: FeatureName
    number: int = 0
    candidate: int = 0


RAW = Feature("raw")
RELU = Feature("relu")
EVERY_SECOND = Feature("every second")  # the ReLU, subsampled by 2 in height and width
FACTORIZED = Feature("factorized")  # the two images that a factorized reduction reads
_RELU = "_prnas_relu"
REST = Feature("rest")  # the channels that go past the candidates, at the size of what these make


class StateFeatures(dict[Feature, Tensor]):
    """The features of a state, each computed once for all the edges that leave it.

    `whole` has all its channels, the first of which candidates read.
    """

    def __init__(
        self,
        cell: "SearchCell",
        state: int,
        all_channels: Tensor,
        generator: torch.Generator | None,
        width: int | None = None,
    ) -> None:
        x = all_channels if width is None else _first_channels(all_channels, width)
        super().__init__({RAW: x})
        self.cell, self.state, self.all_channels, self.generator = (
            cell,
            state,
            all_channels,
            generator,
        )

    def __missing__(self, feature: Feature) -> Tensor:
        self[feature] = tensor = self._compute(*feature)
        return tensor

    def _compute(self, name: FeatureName, number: int, candidate: int) -> Tensor:
        x = self[RAW]
        match name:
            case "raw":
                return x
            case "relu":
                return F.relu(x)
            case "every second":
                return every_second(self[RELU])
            case "factorized":
                shifted = F.pad(self[RELU], (-1, 1, -1, 1))
                return torch.cat([self[EVERY_SECOND], every_second(shifted)], dim=1)
            case "phases":
                return split_phases(self[RELU], number)
            case "max" | "avg":
                return self._pooled(x, name, number)
            case "rest":
                rest = self.all_channels[:, x.shape[1] :]
                if self.cell.stride(self.state) == 1:
                    return rest
                return F.max_pool2d(rest, 2, ceil_mode=True)
            case "dropped":
                return x * mask(x, x.shape, self.cell.skip_dropout, self.generator)
            case "module":
                module = self.cell.operations[number][candidate]  # pyright: ignore[reportIndexIssue]
                output = module(self[RELU], True) if isinstance(module, ReluFirst) else module(x)
                return output.contiguous(memory_format=torch.channels_last)

    def _pooled(self, x: Tensor, name: Literal["max", "avg"], kernel: int) -> Tensor:
        """A pooled state, normalised. To recompute, what lies between both is dropped."""
        stride = self.cell.stride(self.state)
        bn = self.cell.pool_bns[bn_name(self.state, name, kernel)]

        def pooled(x: Tensor) -> Tensor:
            return bn(pool(x, name, kernel, stride))

        if not (self.cell.recompute and x.requires_grad and torch.is_grad_enabled()):
            return pooled(x)
        return recomputed(pooled, [bn], x)


def features_of_output(cell: "SearchCell", output: Tensor) -> StateFeatures:
    """The features of a cell's output for the next two cells; they share its ReLU, kept with it."""
    features = StateFeatures(cell, 0, output, None)
    relu: Tensor | None = getattr(output, _RELU, None)
    if relu is None or relu.requires_grad != output.requires_grad:
        relu = features[RELU]
        setattr(output, _RELU, relu)
    features[RELU] = relu
    return features


def bn_name(state: int, kind: str, kernel: int) -> str:
    return f"{state}-{kind}-{kernel}"


def _first_channels(x: Tensor, number: int) -> Tensor:
    if number == x.shape[1]:
        return x
    return x[:, :number].contiguous(memory_format=torch.channels_last)

"""The final network that a search is for: its size, limits on it, and what it is to cost."""

import re
from typing import Annotated, Any, Literal, Self, cast

from pydantic import BeforeValidator, Field, model_validator

from prnas.config.numbers import Rate
from prnas.config.sections import Section
from prnas.space.costs import NANOSECONDS, CostKind
from prnas.space.final_network import FinalNetwork
from prnas.space.fitting import NetworkLimits
from prnas.space.latency import LatencyField
from prnas.space.network_plan import Stem, check_network
from prnas.space.schedule import MIN_CELLS, MOST_CELLS, MOST_CHANNELS
from prnas.space.shape import CellShape, Output, width

_FACTORS = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000, "b": 1_000_000_000}
_MILLISECONDS = {"": 1.0, "ms": 1.0, "s": 1_000.0, "us": 0.001, "µs": 0.001}
_NUMBER = re.compile(r"\s*(\d{1,15}(?:\.\d{1,15})?)\s*([a-zA-Zµ]{0,2})\s*")


def amount(value: Any) -> Any:
    """A whole number, or one with a unit: '3M', '2.5M', '800k'."""
    if not isinstance(value, str):
        return value
    match = _NUMBER.fullmatch(value)
    if match is None or match[2].lower() not in _FACTORS:
        raise ValueError(f"must be a number such as 3M, 2.5M, 800k or 3000000, got {value!r:.60}")
    return round(float(match[1]) * _FACTORS[match[2].lower()])


def milliseconds(value: Any) -> Any:
    """A number of milliseconds, or one with a unit: '20ms', '0.02s'."""
    if not isinstance(value, str):
        return value
    match = _NUMBER.fullmatch(value)
    if match is None or match[2] not in _MILLISECONDS:
        raise ValueError(f"must be a time such as 20ms, 0.02s or 800us, got {value!r:.60}")
    return float(match[1]) * _MILLISECONDS[match[2]]


Amount = Annotated[int, BeforeValidator(amount), Field(ge=1, le=10**15)]
Milliseconds = Annotated[
    float, BeforeValidator(milliseconds), Field(gt=0, le=1e9, allow_inf_nan=False)
]


class FinalConfig(Section):
    """The network that the cells are for, its latencies, and the most that it may have.

    It is what limits and expected costs are counted for; the search's own network is another.
    """

    #: Number of cells; null: 20, in a residual network 15.
    cells: Annotated[int, Field(ge=MIN_CELLS, le=MOST_CELLS)] | None = None
    #: Channels of the first cells; null: 36, in a residual network 16.
    channels: Annotated[int, Field(ge=1, le=MOST_CHANNELS)] | None = None
    #: Side of its images; null: that of the search's images.
    image_size: Annotated[int, Field(ge=1, le=4096)] | None = None
    #: The first layers: for small images, or for large ones, which they make smaller.
    stem: Stem = "cifar"
    #: How a cell's output is made of its nodes; null: concat, in a residual network the search's.
    output: Output | None = None
    #: Parameters that it may have; null: no limit.
    max_params: Amount | None = None
    #: Multiply-accumulates for an image that it may take; null: no limit.
    max_macs: Amount | None = None
    #: Time for an image that it may take, by the table of latencies; null: no limit.
    max_latency: Milliseconds | None = None
    #: A file of `prnas latency`; the run keeps its content.
    latency: LatencyField | None = None

    @model_validator(mode="after")
    def _can_be_counted(self) -> Self:
        if self.max_latency is not None and self.latency is None:
            raise ValueError(f"max_latency {NEEDS_TABLE}")
        if self.stem == "imagenet" and (self.channels or 36) % 2:
            raise ValueError(
                f"the ImageNet stem halves the channels: they must be even, got {self.channels}"
            )
        return self

    @property
    def limits(self) -> NetworkLimits:
        latency = self.max_latency
        return NetworkLimits(
            self.max_params,
            self.max_macs,
            None if latency is None else round(latency * NANOSECONDS),
        )

    def network(
        self,
        shape: CellShape,
        nodes: int,
        output: Output,
        classes: int,
        images: tuple[int, int, int],
    ) -> FinalNetwork:
        """The final network of cells of this shape; `output` is that of the search's cells."""
        channels, height, width_ = images
        residual = shape.network == "residual"
        return FinalNetwork(
            channels=self.channels or (16 if residual else 36),
            cells=self.cells or (15 if residual else 20),
            classes=classes,
            stem=self.stem,
            output=self.output_of(shape, output),
            input_channels=channels,
            height=self.image_size or height,
            width=self.image_size or width_,
            nodes=nodes,
            states=len(shape.output_states(nodes, output)),
            shape=shape,
        )

    def output_of(self, shape: CellShape, output: Output) -> Output:
        return self.output or (output if shape.network == "residual" else "concat")

    def problems(self, shape: CellShape, nodes: int, output: Output) -> list[str]:
        """The problems of such a network of these cells, as messages."""
        states = len(shape.output_states(nodes, output))
        widest = width(self.output_of(shape, output), states)
        cells = self.cells or (15 if shape.network == "residual" else 20)
        return check_network(shape, cells, widest, self.stem)


LEAST_LOG = 10_000  # units, nanoseconds: less has no sensible logarithm
NEEDS_TABLE = "needs final.latency: a table that `prnas latency` measures (--latency FILE)"


class CostConfig(Section):
    """The expected cost of the final network as a part of the architecture weights' loss.

    By `linear`, weight x (expected - reference) / reference is added to the cross entropy; by
    `log-power`, it is multiplied by (log expected / log reference) to the power of the weight.
    """

    #: Which cost.
    of: CostKind = "params"
    #: How much it counts.
    weight: Rate = 0.2
    #: What the cost is compared with, such as 3M or 20ms; null: the limit of that kind.
    reference: Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False)] | None = None
    #: How it enters the loss.
    form: Literal["linear", "log-power"] = "linear"

    @model_validator(mode="before")
    @classmethod
    def _with_units(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        fields = cast(dict[str, Any], data)
        if "reference" not in fields:
            return fields
        read = milliseconds if fields.get("of") == "latency" else amount
        return {**fields, "reference": read(fields["reference"])}

    def amount(self, limits: NetworkLimits) -> int | None:
        """The reference in whole units; latency in nanoseconds."""
        if self.reference is None:
            return limits.of(self.of)
        return round(self.reference * (NANOSECONDS if self.of == "latency" else 1))

    def problem(self, final: FinalConfig) -> str | None:
        """Why it cannot be with such a final network, if it cannot."""
        if self.of == "latency" and final.latency is None:
            return f"architecture.cost of latency {NEEDS_TABLE}"
        if (reference := self.amount(final.limits)) is None:
            example = "20ms" if self.of == "latency" else "3M"
            return (
                f"architecture.cost needs a reference, such as {example}, or the limit "
                f"final.max_{self.of}"
            )
        if self.form == "log-power" and reference <= LEAST_LOG:
            return f"architecture.cost by log-power needs a reference above {LEAST_LOG:,}"
        return None

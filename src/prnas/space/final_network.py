"""The final network that cells are for, as far as sizes and latencies need to know it."""

from dataclasses import dataclass, replace
from typing import ClassVar

from pydantic import ConfigDict

from prnas.space.checks import STRICT, checked_int
from prnas.space.genotype import Genotype
from prnas.space.layer_size import NetworkSize, Pixels
from prnas.space.network_plan import Stem, num_stem_channels, plan_cells
from prnas.space.network_size import SizedCell, network_size, size_around
from prnas.space.schedule import MIN_CELLS, MOST_CELLS, MOST_CHANNELS
from prnas.space.shape import DARTS, MAX_NODES, CellShape, Output, ShapeField, width


@dataclass(frozen=True, slots=True)
class FinalNetwork:
    """All of a final network but its operations. The defaults are the paper's for CIFAR-10.

    `states` are those that make up a cell's output, of its `nodes`. Images have `height` and
    `width`.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    channels: int = 36
    cells: int = 20
    classes: int = 10
    stem: Stem = "cifar"
    output: Output = "concat"
    input_channels: int = 3
    height: int = 32
    width: int = 32
    nodes: int = 4
    states: int = 4
    shape: ShapeField = DARTS

    def __post_init__(self) -> None:
        checked_int("channels", self.channels, most=MOST_CHANNELS)
        checked_int("cells", self.cells, MIN_CELLS, MOST_CELLS)
        checked_int("classes", self.classes, most=1_000_000)
        checked_int("input_channels", self.input_channels)
        checked_int("height", self.height, most=100_000)
        checked_int("width", self.width, most=100_000)
        checked_int("nodes", self.nodes, most=MAX_NODES)
        checked_int("states", self.states, most=self.nodes)

    @property
    def pixels(self) -> Pixels:
        return self.height, self.width

    @property
    def around(self) -> tuple[NetworkSize, list[SizedCell]]:
        """The size of all that is no operation of a cell, and the cells with their pixels."""
        shape: CellShape = self.shape
        stem_channels = num_stem_channels(self.channels, self.stem, shape)
        widths = dict.fromkeys(shape.roles, width(self.output, self.states))
        after_reduction = self.stem == "imagenet"
        plans, c_out = plan_cells(
            self.cells, self.channels, stem_channels, widths, after_reduction, shape
        )
        return size_around(
            plans,
            c_out,
            self.classes,
            shape,
            self.stem,
            self.input_channels,
            stem_channels,
            self.pixels,
        )

    def size(self, genotype: Genotype) -> NetworkSize:
        """The size of a genotype's network, which must have this form."""
        return network_size(
            genotype,
            self.channels,
            self.cells,
            self.classes,
            stem=self.stem,
            output=self.output,
            input_channels=self.input_channels,
            image_size=self.pixels,
        )

    def like(self, other: "FinalNetwork") -> bool:
        """Whether it is the same but for the number of classes, which takes next to no time."""
        return replace(self, classes=1) == replace(other, classes=1)

    @property
    def in_words(self) -> str:
        """'36 channels, 20 cells, 3x32x32 images'."""
        images = f"{self.input_channels}x{self.height}x{self.width} images"
        stem = ", ImageNet's stem" if self.stem == "imagenet" else ""
        return f"{self.channels} channels, {self.cells} cells, {images}{stem}"

"""The network of a genotype as a textbook writes it, with what training adds to it."""

from collections.abc import Callable
from functools import partial
from typing import cast

from torch import Tensor, nn

from prnas.nets.plain import (
    Cell,
    CellNetwork,
    CifarStem,
    ImageNetStem,
    OpenCell,
    ResidualNetwork,
    named,
    nodes_of,
    operations_of,
)
from prnas.space.genotype import Genotype
from prnas.space.network_plan import Stem
from prnas.space.shape import DARTS, Output


def network_of(
    genotype: Genotype,
    channels: int = 36,
    cells: int = 20,
    classes: int = 10,
    *,
    stem: Stem = "cifar",
    output: Output = "concat",
    input_channels: int = 3,
) -> CellNetwork | ResidualNetwork:
    """The network of a genotype, as it is evaluated."""
    shape, operations = genotype.shape, operations_of(genotype)
    made: dict[str, Callable[..., nn.Module]] = {}
    for role in genotype.roles:
        cell = genotype.cell(role)
        arguments = (nodes_of(cell), cell.concat, operations)
        if shape == DARTS and output in ("concat", "mean"):
            made[role] = partial(Cell, *arguments, mean=output == "mean")
        else:
            projects = shape.network == "darts"
            made[role] = partial(
                OpenCell, *arguments, inputs=shape.inputs, projects=projects, combined=output
            )
    if shape.network == "residual":
        return ResidualNetwork(made["normal"], channels, cells, classes, input_channels)
    images = (CifarStem if stem == "cifar" else ImageNetStem)(input_channels, channels)
    normal, reduction = (
        cast(Callable[..., Cell], made[role]) for role in ("normal", shape.roles[-1])
    )
    return CellNetwork(images, normal, reduction, channels, cells, classes)


class Network(nn.Module):
    """A network with drop-path and an auxiliary head: (logits, auxiliary logits) in training."""

    def __init__(
        self,
        genotype: Genotype,
        channels: int = 36,
        cells: int = 20,
        classes: int = 10,
        *,
        stem: Stem = "cifar",
        output: Output = "concat",
        input_channels: int = 3,
    ) -> None:
        super().__init__()
        self.network = network_of(
            genotype,
            channels,
            cells,
            classes,
            stem=stem,
            output=output,
            input_channels=input_channels,
        )
        auxiliary_cell = cast(Cell, self.network.cells[2 * cells // 3])
        stride = 3 if stem == "cifar" else 2
        self.auxiliary = auxiliary_head(auxiliary_cell.c_out, classes, stride)
        auxiliary_cell.register_forward_hook(self._keep)
        self.drop_path_probability = 0.0
        for cell in self.network.cells:
            for node in cast(Cell, cell).operations:
                for operation in node.children():
                    if not isinstance(operation, nn.Identity):
                        operation.register_forward_hook(self._drop_path)

    def _keep(self, cell: nn.Module, inputs: object, output: Tensor) -> None:
        self.auxiliary_features = output

    def _drop_path(self, operation: nn.Module, inputs: object, output: Tensor) -> Tensor:
        """Some images of an operation's output become zero, and the others make up for it."""
        if not self.training or self.drop_path_probability == 0:
            return output
        keep = 1 - self.drop_path_probability
        return output / keep * output.new_empty(len(output), 1, 1, 1).bernoulli_(keep)

    def forward(self, images: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        logits = self.network(images)
        return (logits, self.auxiliary(self.auxiliary_features)) if self.training else logits


def auxiliary_head(c: int, classes: int, stride: int) -> nn.Module:
    """A second classifier, for features of 8 x 8 (stride 3) or 7 x 7 (stride 2)."""
    return named(
        relu=nn.ReLU(),
        pool=nn.AvgPool2d(5, stride),
        features=nn.Sequential(
            nn.Conv2d(c, 128, 1, bias=False),
            nn.BatchNorm2d(128),
            nn.ReLU(),
            nn.Conv2d(128, 768, 2, bias=False),
            nn.BatchNorm2d(768),
            nn.ReLU(),
        ),
        flatten=nn.Flatten(),
        classifier=nn.Linear(768, classes),
    )

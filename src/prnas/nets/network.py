"""The final network of a genotype: a plain module."""

from collections.abc import Sequence
from typing import get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prnas.nets.devices import to_device
from prnas.nets.kernels.batch_norm import BatchNorm
from prnas.nets.operations import ConvChain, ReluConvBN, ReluFirst, projections
from prnas.nets.operations import build as build_operation
from prnas.nets.weights import construct
from prnas.space import genotype as space
from prnas.space.genotype import Genotype
from prnas.space.network_plan import (
    CellPlan,
    Stem,
    genotype_problems,
    num_stem_channels,
    output_widths,
    plan_cells,
    reduction_positions,
)
from prnas.space.schedule import MIN_CELLS
from prnas.space.shape import Output

AUXILIARY_STRIDE: dict[Stem, int] = {"cifar": 3, "imagenet": 2}


def paths(x: Tensor, probability: float, generator: torch.Generator | None) -> Tensor:
    """Drop-path's mask: whole images of a batch become zero, the others keep the mean."""
    return mask(x, (x.shape[0], *(1,) * (x.ndim - 1)), probability, generator)


def mask(
    x: Tensor, shape: Sequence[int], probability: float, generator: torch.Generator | None
) -> Tensor:
    """A mask of `shape` to multiply `x` by: zero with `probability`, and keeping the mean."""
    keep = 1 - probability
    # Drawn where the generator lives (the CPU), so that every device drops the same.
    device = generator.device if generator is not None else x.device
    drawn = torch.empty(shape, dtype=x.dtype, device=device).bernoulli_(keep, generator=generator)
    return to_device(drawn / keep, x.device)


class Cell(nn.Module):
    """A cell of the final network.

    If its plan projects, it reads rectified images and, with `rectify`, returns such; else it reads
    its input as it is.
    """

    def __init__(self, cell: space.Cell, plan: CellPlan, output: Output) -> None:
        super().__init__()
        self.output: Output = output
        self.concat = cell.concat
        self.num_inputs = cell.shape.inputs
        self.preprocess = nn.ModuleList(projections(plan, self.num_inputs, affine=True))
        self.inputs = [tuple(edge.input for edge in node) for node in cell.nodes]
        self.operations = nn.ModuleList(
            nn.ModuleList(
                build_operation(
                    edge.op,
                    plan.channels,
                    stride=2 if plan.reduces and edge.input < self.num_inputs else 1,
                    affine=True,
                )
                for edge in node
            )
            for node in cell.nodes
        )

    def forward(
        self,
        before_last: Tensor,
        last: Tensor,
        drop_probability: float,
        generator: torch.Generator | None,
        rectify: bool = False,
    ) -> Tensor:
        states = [before_last, last][-self.num_inputs :]
        if self.preprocess:
            pairs = zip(self.preprocess, states, strict=True)
            states = [module(x, True) for module, x in pairs]
        rectified: dict[int, Tensor] = {}  # once for all operations that want it
        for inputs, node in zip(self.inputs, self.operations, strict=True):
            terms: list[tuple[Tensor, Tensor | None]] = []
            for source, operation in zip(inputs, node.children(), strict=True):
                if isinstance(operation, ReluFirst | ConvChain):
                    if source not in rectified:
                        rectified[source] = F.relu(states[source])
                    term = operation(rectified[source], True)
                else:
                    term = operation(states[source])
                drops = drop_probability > 0 and not isinstance(operation, nn.Identity)
                drop_mask = paths(term, drop_probability, generator) if drops else None
                terms.append((term, drop_mask))
            states.append(_sum(terms))
        out = joined([states[state] for state in self.concat], self.output)
        if not rectify:
            return out
        # In place what no module made, so that no hook can see the difference.
        return F.relu(out) if self.output == "last" else out.relu_()


def joined(nodes: Sequence[Tensor], output: Output) -> Tensor:
    """A cell's output; a new tensor unless it is the last node."""
    match output:
        case "concat":
            return torch.cat(list(nodes), dim=1)
        case "mean":
            return torch.stack(list(nodes)).mean(dim=0)
        case "sum":
            return torch.stack(list(nodes)).sum(dim=0)
        case "last":
            return nodes[-1]


def _sum(terms: Sequence[tuple[Tensor, Tensor | None]]) -> Tensor:
    """The sum of images, each times its mask if there is one, in as few passes as can be."""
    if len(terms) != 2:
        total, factor = terms[0]
        total = total if factor is None else total * factor
        for term, factor in terms[1:]:
            total = total + term if factor is None else torch.addcmul(total, term, factor)
        return total
    (first, first_mask), (second, second_mask) = terms
    if first_mask is None:
        first, first_mask, second, second_mask = second, second_mask, first, first_mask
    if first_mask is None:
        return first + second
    return torch.addcmul(second if second_mask is None else second * second_mask, first, first_mask)


class AuxiliaryHead(nn.Module):
    """A second classifier two thirds into the network, for training only.

    Made for 8 x 8 (CIFAR) or 7 x 7 (ImageNet) features, which pool to 2 x 2; features of another
    size are pooled to 2 x 2 adaptively.
    """

    def __init__(self, channels: int, classes: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.features = nn.Sequential(
            nn.Conv2d(channels, 128, 1, bias=False),
            BatchNorm(128),
            nn.ReLU(),
            nn.Conv2d(128, 768, 2, bias=False),
            BatchNorm(768),
            nn.ReLU(),
        )
        self.classifier = nn.Linear(768, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(x)
        fits = all((size - 5) // self.stride == 1 and size >= 5 for size in x.shape[2:])
        x = F.avg_pool2d(x, 5, self.stride) if fits else F.adaptive_avg_pool2d(x, 2)
        return self.classifier(self.features(x).flatten(1))


class ImageNetStem(nn.Module):
    """Three 3 x 3 convolutions of stride 2: the first cell reads after two and after three."""

    def __init__(self, input_channels: int, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.quarter = nn.Sequential(
            nn.Conv2d(input_channels, half, 3, stride=2, padding=1, bias=False),
            BatchNorm(half),
            nn.ReLU(),
            nn.Conv2d(half, channels, 3, stride=2, padding=1, bias=False),
            BatchNorm(channels),
        )
        self.eighth = nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, stride=2, padding=1, bias=False),
            BatchNorm(channels),
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        quarter = self.quarter(x)
        return quarter, self.eighth(quarter)


class CifarStem(nn.Module):
    """A 3 x 3 convolution to three times the channels, BN: both inputs of the first cell."""

    def __init__(self, input_channels: int, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(input_channels, channels, 3, padding=1, bias=False)
        self.bn = BatchNorm(channels)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.bn(self.conv(x))
        return x, x


class ResidualBlock(nn.Module):
    """Halves images: two 3 x 3 convolutions, beside them a 2 x 2 mean and a 1 x 1 convolution."""

    def __init__(self, c_in: int, c_out: int) -> None:
        super().__init__()
        self.first = ReluConvBN(c_in, c_out, affine=True, kernel=3, stride=2)
        self.second = ReluConvBN(c_out, c_out, affine=True, kernel=3)
        self.pool = nn.AvgPool2d(2, ceil_mode=True)  # rounded as stride 2 is
        self.shortcut = nn.Conv2d(c_in, c_out, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.shortcut(self.pool(x)) + self.second(self.first(x))


def residual_blocks(plans: Sequence[CellPlan]) -> nn.ModuleDict:
    """The blocks of a residual network, each by the index of the cell that follows."""
    return nn.ModuleDict(
        {
            str(index): ResidualBlock(plan.channels // 2, plan.channels)
            for index, plan in enumerate(plans)
            if plan.after_block
        }
    )


class Network(nn.Module):
    """The final network. Set `drop_path_probability` during training as the schedule asks.

    In training mode with an auxiliary head, it returns (logits, auxiliary logits), else logits.
    A `generator` passed to the call decides which paths drop; without one, PyTorch's global does.
    """

    def __init__(
        self,
        genotype: Genotype,
        channels: int,
        cells: int,
        classes: int,
        stem: Stem,
        auxiliary: bool,
        output: Output,
        input_channels: int,
    ) -> None:
        super().__init__()
        self.drop_path_probability = 0.0
        shape = genotype.shape
        stem_channels = num_stem_channels(channels, stem, shape)
        make_stem = CifarStem if stem == "cifar" else ImageNetStem
        self.stem = make_stem(input_channels, stem_channels)
        widths = output_widths(genotype, output)
        plans, c_out = plan_cells(cells, channels, stem_channels, widths, stem == "imagenet", shape)
        self.rectifies = shape.network == "darts"  # what cells read
        self.blocks = residual_blocks(plans)
        self.cells = nn.ModuleList(Cell(genotype.cell(plan.role), plan, output) for plan in plans)
        self.auxiliary_index = reduction_positions(cells)[1]
        self.auxiliary = None
        if auxiliary:
            plan = plans[self.auxiliary_index]
            c_auxiliary = plan.channels * widths[plan.role]
            self.auxiliary = AuxiliaryHead(c_auxiliary, classes, AUXILIARY_STRIDE[stem])
        if shape.network == "residual":
            self.bn = BatchNorm(c_out)
        self.classifier = nn.Linear(c_out, classes)

    def forward(
        self, images: Tensor, generator: torch.Generator | None = None
    ) -> Tensor | tuple[Tensor, Tensor]:
        before_last, last = first, second = self.stem(images)
        if self.rectifies:
            # Whatever reads a stem wants its ReLU: made once. Not in place: hooks may keep it.
            before_last = F.relu(first)
            last = before_last if second is first else F.relu(second)
        drop = self.drop_path_probability if self.training else 0.0
        auxiliary_logits = None
        for index, cell in enumerate(self.cells):
            if str(index) in self.blocks:
                before_last = last = self.blocks[str(index)](last)
            rectify = self.rectifies and index < len(self.cells) - 1
            before_last, last = last, cell(before_last, last, drop, generator, rectify)
            if self.training and self.auxiliary is not None and index == self.auxiliary_index:
                auxiliary_logits = self.auxiliary(last)
        if not self.rectifies:
            last = F.relu(self.bn(last))
        logits = self.classifier(last.mean(dim=(2, 3)))
        return logits if auxiliary_logits is None else (logits, auxiliary_logits)


def build(
    genotype: Genotype,
    channels: int = 36,
    cells: int = 20,
    classes: int = 10,
    *,
    stem: Stem = "cifar",
    auxiliary: bool = False,
    output: Output = "concat",
    input_channels: int = 3,
    generator: torch.Generator | None = None,
) -> Network:
    """The network that repeats a genotype's cells. The defaults are the paper's for CIFAR-10.

    `output` says how a cell's output is made of the nodes that its `concat` names.

    Its weights come from `generator` (a new one of seed 0 by default) alone. All problems with
    the arguments are raised in one `ValueError`.
    """
    check_arguments(
        channels=(channels, 1),
        cells=(cells, MIN_CELLS),
        classes=(classes, 1),
        input_channels=(input_channels, 1),
        stem=(stem, ("cifar", "imagenet")),
        output=(output, get_args(Output)),
    )
    if problems := genotype_problems(genotype, cells, output, stem):
        raise ValueError("; ".join(problems))
    if stem == "imagenet" and channels % 2:
        raise ValueError(
            f"the ImageNet stem halves the channels: they must be even, got {channels}"
        )
    generator = generator or torch.Generator().manual_seed(0)
    return construct(
        lambda: Network(
            genotype, channels, cells, classes, stem, auxiliary, output, input_channels
        ),
        generator,
    )


def check_arguments(**arguments: tuple[object, int | tuple[str, ...]]) -> None:
    """Raise all problems at once: a rule is the least whole number, or the choices."""
    problems: list[str] = []
    for name, (value, rule) in arguments.items():
        if isinstance(rule, tuple):
            if value not in rule:
                problems.append(f"{name} must be one of {', '.join(rule)}, got {value!r:.60}")
        elif not isinstance(value, int) or isinstance(value, bool) or value < rule:
            problems.append(f"{name} must be a whole number of at least {rule}, got {value!r:.60}")
    if problems:
        raise ValueError("; ".join(problems))

"""The final network as textbooks have it, and as peers do: plain modules, each with its own ReLU.

Its parts are called as in `prnas.nets.network`, so that weights can be copied over by name.
"""

import torch
from torch import Tensor, nn

from benchmarks.textbook_operations import named, operation, project
from prnas.space.genotype import NUM_INPUTS, Cell, Genotype, Role
from prnas.space.network_plan import CellPlan, plan_cells, reduction_places


class TextbookCell(nn.Module):
    def __init__(self, cell: Cell, plan: CellPlan) -> None:
        super().__init__()
        self.cell = cell
        self.preprocess = nn.ModuleList(
            [
                project(plan.c_before_last, plan.channels, plan.after_reduction, affine=True),
                project(plan.c_last, plan.channels, False, affine=True),
            ]
        )
        self.operations = nn.ModuleList(
            nn.ModuleList(
                operation(
                    edge.op,
                    plan.channels,
                    2 if plan.reduces and edge.input < NUM_INPUTS else 1,
                    affine=True,
                )
                for edge in node
            )
            for node in cell.nodes
        )

    def forward(self, before_last: Tensor, last: Tensor, drop: float) -> Tensor:
        states = [self.preprocess[0](before_last), self.preprocess[1](last)]
        for node, operations in zip(self.cell.nodes, self.operations, strict=True):
            parts: list[Tensor] = []
            for edge, run in zip(node, operations.children(), strict=True):
                part = run(states[edge.input])
                if drop > 0 and not isinstance(run, nn.Identity):
                    kept = part.new_empty(len(part), 1, 1, 1).bernoulli_(1 - drop)
                    part = part / (1 - drop) * kept
                parts.append(part)
            states.append(parts[0] + parts[1])
        return torch.cat([states[state] for state in self.cell.concat], dim=1)


class TextbookHead(nn.Module):
    """The auxiliary head, for images of 32 x 32 and the like."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.pool = nn.Sequential(nn.ReLU(), nn.AvgPool2d(5, stride=3))
        self.features = nn.Sequential(
            nn.Conv2d(channels, 128, 1, bias=False),
            nn.BatchNorm2d(128),
            nn.ReLU(),
            nn.Conv2d(128, 768, 2, bias=False),
            nn.BatchNorm2d(768),
            nn.ReLU(),
        )
        self.classifier = nn.Linear(768, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(self.pool(x)).flatten(1))


class TextbookNetwork(nn.Module):
    """The same network as `prnas.nets.network.Network`, for CIFAR, with an auxiliary head."""

    def __init__(
        self, genotype: Genotype, channels: int = 36, cells: int = 20, classes: int = 10
    ) -> None:
        super().__init__()
        self.drop_path_probability = 0.0
        self.stem = named(
            conv=nn.Conv2d(3, 3 * channels, 3, padding=1, bias=False),
            bn=nn.BatchNorm2d(3 * channels),
        )
        width: dict[Role, int] = {
            "normal": len(genotype.normal.concat),
            "reduction": len(genotype.reduction.concat),
        }
        plans, c_out = plan_cells(cells, channels, 3 * channels, width)
        self.cells = nn.ModuleList(TextbookCell(genotype.cell(plan.role), plan) for plan in plans)
        self.auxiliary_place = reduction_places(cells)[1]
        plan = plans[self.auxiliary_place]
        self.auxiliary = TextbookHead(plan.channels * width[plan.role], classes)
        self.classifier = nn.Linear(c_out, classes)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        before_last = last = self.stem(images)
        auxiliary = last
        for place, cell in enumerate(self.cells):
            before_last, last = last, cell(before_last, last, self.drop_path_probability)
            if place == self.auxiliary_place:
                auxiliary = self.auxiliary(last)
        return self.classifier(last.mean(dim=(2, 3))), auxiliary

"""The supernet: a network whose edges hold whole pools of candidates, mixed by weights."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import cast, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prnas.config.architecture import ArchitectureConfig
from prnas.config.choices import Execution
from prnas.nets.kernels.batch_norm import BatchNorm
from prnas.nets.network import CifarStem, check_arguments, residual_blocks
from prnas.nets.relaxations import CycleProgress, Relaxation, Softmax
from prnas.nets.relaxations.base import Part
from prnas.nets.search_cell import ActiveCell, SearchCell
from prnas.nets.smoothing import smoothed
from prnas.nets.weights import construct
from prnas.space.change import Change
from prnas.space.network_plan import check_network, num_stem_channels, plan_cells
from prnas.space.pools import Pools
from prnas.space.schedule import MIN_CELLS
from prnas.space.shape import Output, Role, width

Active = Mapping[Role, ActiveCell | None]  # `None`: all candidates


class Supernet(nn.Module):
    """The pools of candidates in a network of cells. Build one with `build_supernet`.

    `architecture[role][edge]` holds an edge's architecture weights, one a candidate, shared by all
    cells of that role. If the relaxation's settings ask for edge weights,
    `edge_architecture[role][node]` has one for each edge into a node. `recompute` keeps little for
    the backward pass and computes it again: less memory for more time, and the same result. All
    batch normalisations follow the mode of the whole (`train` or `eval`); a single one cannot be
    set apart.
    """

    def __init__(
        self,
        pools: Pools,
        channels: int,
        cells: int,
        classes: int,
        input_channels: int,
        output: Output,
        relaxation: Relaxation,
        recompute: bool,
        execution: Execution,
        partial_channels: int = 1,
    ) -> None:
        super().__init__()
        self.pools, self.relaxation = pools, relaxation
        shape, settings = pools.shape, relaxation.settings
        stem_channels = num_stem_channels(channels, shape=shape)
        self.stem = CifarStem(input_channels, stem_channels)
        plans, c_out = plan_cells(
            cells, channels, stem_channels, output_widths(pools, output), shape=shape
        )
        self.blocks = residual_blocks(plans)
        skip = settings.auxiliary_skip
        helped = skip is not None and max(skip.start, skip.end) > 0
        how = (execution, partial_channels, helped)
        # The backward pass begins with the last cell, whose tensors are small: it keeps them.
        last = len(plans) - 1
        self.cells = nn.ModuleList(
            SearchCell(pools.cell(plan.role), plan, output, recompute and index < last, *how)
            for index, plan in enumerate(plans)
        )
        self.bn = BatchNorm(c_out) if shape.network == "residual" else None
        self.classifier = nn.Linear(c_out, classes)
        self.architecture = nn.ModuleDict({role: nn.ParameterList() for role in pools.roles})
        self.edge_architecture = nn.ModuleDict(
            {role: nn.ParameterList() for role in pools.roles if settings.edge_weights}
        )
        # The kept candidate of each edge that is discrete already, by role and the edge's number.
        self.decided: dict[tuple[Role, int], int] = {}
        # The mixing weights of the last pass, within `training_only`; else there are none.
        self.mixed: dict[Role, list[Tensor]] = {}

    @property
    def search_cells(self) -> list[SearchCell]:
        return [cast(SearchCell, cell) for cell in self.cells]

    @property
    def execution(self) -> Execution:
        """The way to compute the cells. It may change at any time: the weights are the same."""
        return self.search_cells[0].execution

    @execution.setter
    def execution(self, execution: Execution) -> None:
        for cell in self.search_cells:
            cell.execution = execution

    def architecture_weights(self, role: Role) -> list[nn.Parameter]:
        """The architecture weights of a cell's edges."""
        return list(cast(nn.ParameterList, self.architecture[role]))

    def architecture_parameters(self) -> list[nn.Parameter]:
        """The architecture weights, those of edges, and parameters that the relaxation may have."""
        edges = self.edge_architecture.parameters()
        return [*self.architecture.parameters(), *edges, *self.relaxation.parameters()]

    def edge_weights(self) -> dict[Role, list[Tensor]] | None:
        """The weight of each edge: of those into a node, the softmax. `None`: they have none."""
        if not self.edge_architecture:
            return None
        weights: dict[Role, list[Tensor]] = {}
        for role in self.pools.roles:
            nodes = cast(nn.ParameterList, self.edge_architecture[role])
            weights[role] = [edge for node in nodes for edge in node.softmax(dim=0).unbind()]
        return weights

    @property
    def progress(self) -> CycleProgress:
        """The progress of the cycle."""
        return self.relaxation.progress

    @progress.setter
    def progress(self, progress: CycleProgress) -> None:
        self.relaxation.progress = progress
        anneal = self.relaxation.settings.auxiliary_skip
        if anneal is not None:
            self.set_auxiliary(progress.annealed(anneal))

    def set_auxiliary(self, weight: float) -> None:
        """The weight of auxiliary skips, if the cells have them."""
        for cell in self.search_cells:
            cell.auxiliary = weight

    def weight_parameters(self) -> list[nn.Parameter]:
        """All parameters but the architecture weights and those of the relaxation."""
        own = {id(weights) for weights in self.architecture_parameters()}
        return [weight for weight in self.parameters() if id(weight) not in own]

    @contextmanager
    def training_only(self, *parts: Part) -> Iterator[list[nn.Parameter]]:
        """Within it, gradients are computed for these parts only; the rest costs nothing."""
        parameters: dict[Part, list[nn.Parameter]] = {
            "weights": self.weight_parameters(),
            "architecture": self.architecture_parameters(),
        }
        rest = (weight for part in parameters if part not in parts for weight in parameters[part])
        frozen = [weight for weight in rest if weight.requires_grad]
        for weight in frozen:
            weight.requires_grad_(False)
        before, self.relaxation.trained = self.relaxation.trained, parts
        try:
            yield [weight for part in parts for weight in parameters[part]]
        finally:
            self.relaxation.trained, self.mixed = before, {}
            for weight in frozen:
                weight.requires_grad_(True)

    def set_skip_dropout(self, probability: float) -> None:
        """Drop single values of identities during training, as P-DARTS does."""
        if not 0 <= probability < 1:
            raise ValueError(f"skip dropout must be at least 0 and below 1, got {probability}")
        for cell in self.search_cells:
            cell.skip_dropout = probability

    def reset_architecture(self) -> None:
        """Architecture weights as a cycle begins: all candidates of an edge weigh the same."""
        like = self.classifier.weight
        self.decided = {}
        self.relaxation.pools = self.pools
        for role in self.pools.roles:
            sizes = [len(edge.candidates) for edge in self.pools.cell(role).edges]
            self.architecture[role] = nn.ParameterList(
                self.relaxation.initial(size, like) for size in sizes
            )
            if role in self.edge_architecture:
                nodes = self.pools.shape.nodes(self.pools.cell(role).num_nodes)
                self.edge_architecture[role] = nn.ParameterList(map(like.new_zeros, nodes))
        self.relaxation.reset(self.pools, like)

    def evolve(
        self, change: Change, generator: torch.Generator, after: Pools | None = None
    ) -> None:
        """Apply a change of the pools to the network; `after` are the pools after it, if known.

        Survivors keep their very tensors, children are made from their parents in every cell, and
        architecture weights are equal again. Optimizers must start afresh.
        """
        after = after or self.pools.apply(change)
        for cell in self.search_cells:
            role = cell.plan.role
            cell.evolve(change.cell(role), after.cell(role), generator)
        self.pools = after
        self.reset_architecture()

    def all_architecture_weights(self) -> dict[Role, list[nn.Parameter]]:
        """The architecture weights of all edges."""
        return {role: self.architecture_weights(role) for role in self.pools.roles}

    def penalty(self) -> Tensor | None:
        """The relaxation's term of the architecture weights' loss, if it has one."""
        return self.relaxation.penalty(self.all_architecture_weights())

    @torch.no_grad()
    def project(self) -> None:
        """After an architecture step: bring architecture weights back to where they may be."""
        self.relaxation.project(self.all_architecture_weights())

    @torch.no_grad()
    def judged(self) -> dict[Role, list[Tensor]]:
        """The numbers that are judged in place of the architecture weights at a cycle's end."""
        weights = self.all_architecture_weights()
        return {role: self.relaxation.judged(role, weights[role]) for role in weights}

    def mixing(self, generator: torch.Generator | None = None) -> dict[Role, list[Tensor]]:
        """The mixing weights of all candidates, edge by edge."""
        mixing: dict[Role, list[Tensor]] = {
            role: self.relaxation.mix(role, self.architecture_weights(role), generator)
            for role in self.pools.roles
        }
        smoothing = self.relaxation.settings.random_smoothing
        if smoothing is not None and self.relaxation.trained == ("weights",):
            radius = self.progress.annealed(smoothing)
            mixing = {role: smoothed(edges, radius, generator) for role, edges in mixing.items()}
        for (role, edge), index in self.decided.items():
            alone = torch.zeros_like(mixing[role][edge], requires_grad=False)
            alone[index] = 1.0
            mixing[role][edge] = alone
        if (weights := self.edge_weights()) is not None:
            mixing = {
                role: [edge * weight for edge, weight in zip(edges, weights[role], strict=True)]
                for role, edges in mixing.items()
            }
        if self.relaxation.trained:
            self.mixed = mixing
        return mixing

    def forward(
        self,
        images: Tensor,
        generator: torch.Generator | None = None,
        active: Active | None = None,
        mixing: Mapping[Role, list[Tensor]] | None = None,
    ) -> Tensor:
        """Logits. Only `active` candidates are computed, of all cells of a role.

        By default, those that the relaxation says, which are all unless it samples or prunes some.

        The weights of the others get no gradient (`None`), and their running statistics stay.
        Candidates are mixed by `mixing`, if it is there, and not as the relaxation says; then
        edges have no weights.
        """
        images = images.contiguous(memory_format=torch.channels_last)
        edge_weights = None
        if mixing is None:
            edge_weights = self.edge_weights()
            mixing = self.mixing(generator)
            if active is None:
                active = self._active(mixing)
        before_last, last = self.stem(images)
        for index, cell in enumerate(self.search_cells):
            before_last, last = self.entering(index, before_last, last)
            role = cell.plan.role
            chosen = None if active is None else active[role]
            edges = None if edge_weights is None else edge_weights[role]
            made = cell(before_last, last, mixing[role], generator, chosen, edges)
            before_last, last = last, made
        return self.classified(last)

    def _active(self, mixing: Mapping[Role, list[Tensor]]) -> Active | None:
        active: dict[Role, ActiveCell | None] = {
            role: self.relaxation.active(role, edges) for role, edges in mixing.items()
        }
        for (role, edge), index in self.decided.items():
            cell = active[role] or tuple(tuple(range(len(edge))) for edge in mixing[role])
            active[role] = (*cell[:edge], (index,), *cell[edge + 1 :])
        return active if any(cell is not None for cell in active.values()) else None

    def entering(self, index: int, before_last: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
        """The inputs of a cell; a residual block before it replaces the last one."""
        if str(index) not in self.blocks:
            return before_last, last
        x = self.blocks[str(index)](last)
        return x, x

    def classified(self, last: Tensor) -> Tensor:
        """Logits from the last cell's output."""
        if self.bn is not None:
            last = F.relu(self.bn(last))
        return self.classifier(last.mean(dim=(2, 3)))


def output_widths(pools: Pools, output: Output) -> dict[Role, int]:
    """The factors by which the outputs of a supernet's cells are wider than the cells' channels."""
    return {role: width(output, pools.cell(role).num_nodes) for role in pools.roles}


def build_supernet(
    pools: Pools,
    channels: int = 16,
    cells: int = 8,
    classes: int = 10,
    *,
    input_channels: int = 3,
    output: Output = "concat",
    relaxation: Relaxation | None = None,
    recompute: bool = False,
    execution: Execution = "fused",
    partial_channels: int = 1,
    generator: torch.Generator | None = None,
) -> Supernet:
    """The supernet of pools; the defaults are the paper's for CIFAR-10.

    With `partial_channels` K, candidates compute one of K parts of the channels (PC-DARTS).
    Its weights come from `generator` (a new one of seed 0 by default) alone. All problems with
    the arguments are raised in one `ValueError`.
    """
    check_arguments(
        channels=(channels, 1),
        cells=(cells, MIN_CELLS),
        classes=(classes, 1),
        input_channels=(input_channels, 1),
        output=(output, get_args(Output)),
        partial_channels=(partial_channels, 1),
    )
    widest = max(output_widths(pools, output).values())
    if problems := check_network(pools.shape, cells, widest):
        raise ValueError("; ".join(problems))
    if channels % partial_channels:
        raise ValueError(f"channels ({channels}) must be a multiple of {partial_channels}")
    relaxation = relaxation or Softmax(ArchitectureConfig())
    supernet = construct(
        lambda: Supernet(
            pools,
            channels,
            cells,
            classes,
            input_channels,
            output,
            relaxation,
            recompute,
            execution,
            partial_channels,
        ),
        generator or torch.Generator().manual_seed(0),
    )
    supernet.reset_architecture()
    return supernet

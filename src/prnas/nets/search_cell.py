"""A cell of the supernet: every edge holds its whole pool of candidates.

It can be computed in two ways, on the same weights. `fused` mixes all candidates of a node by
hand-written kernels (see `prnas.nets.kernels.mixture`). `plain` runs one candidate's module after
the other and leaves the rest to PyTorch: on any device, in mixed precision, and differentiable as
often as one likes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from prnas.config.choices import Execution
from prnas.nets.features import (
    EVERY_SECOND,
    FACTORIZED,
    RAW,
    RELU,
    REST,
    Feature,
    StateFeatures,
    bn_name,
    features_of_output,
)
from prnas.nets.inheritance import inherit
from prnas.nets.kernels.batch_norm import recomputed
from prnas.nets.kernels.links import Link, PointwiseLink, SeparableLink
from prnas.nets.kernels.mixture import MixedCandidate, mix
from prnas.nets.network import joined
from prnas.nets.operations import (
    ConvChain,
    FactorizedReduction,
    ReluConvBN,
    ReluFirst,
    SeparableConv,
    build,
    projections,
)
from prnas.space.change import Added, CellChange
from prnas.space.network_plan import CellPlan
from prnas.space.operations import Conv, Operation, PlainConv, Pool, Skip, Zero
from prnas.space.pools import CellPools
from prnas.space.shape import Output

# Indices of the candidates that are computed, for each edge of a cell.
ActiveCell = tuple[tuple[int, ...], ...]
_PlanKey = tuple[int, int, int, bool, bool, tuple[tuple[int, ...], ...] | None]
_MOST_PLANS = 4096  # plans of sampled nodes that are cached; beyond them all are made again


@dataclass(frozen=True, slots=True)
class NodePlan:
    """The plan for computing a node: the features that it reads, its edges and its candidates."""

    features: list[tuple[int, Feature]]  # (state, feature)
    edges: list[int]
    candidates: list[MixedCandidate]
    # The same for plain execution: (edge, index), (state, feature that it reads), module.
    # An edge's auxiliary skip has the index `None`.
    modules: list[tuple[tuple[int, int | None], tuple[int, Feature], nn.Module]]

    def parameters(self) -> list[Tensor]:
        """The weights of all candidates, as the modules hold them now."""
        chains = (candidate.chain for candidate in self.candidates)
        return [weight for chain in chains for link in chain for weight in link.parameters()]


class SearchCell(nn.Module):
    """One cell. `operations[edge][index]` is the module of a candidate and owns its weights.

    The pools of a state share one BN for all edges (without affine parameters it is the same), in
    `pool_bns`. A node without any candidate that computes something is zero.

    With `partial` K, candidates read and make the first of K parts of a state's channels; the
    others go past them, and all are shuffled, so that each part has its turn (PC-DARTS). With
    `auxiliary_skips`, an edge also adds its input, times `auxiliary`, to its node (DARTS-).
    """

    def __init__(
        self,
        pools: CellPools,
        plan: CellPlan,
        output: Output,
        recompute: bool,
        execution: Execution,
        partial: int = 1,
        auxiliary_skips: bool = False,
    ) -> None:
        super().__init__()
        self.pools, self.plan, self.recompute = pools, plan, recompute
        self.partial, self.width = partial, plan.channels // partial
        self.auxiliary = 0.0
        self.execution: Execution = execution
        self.output: Output = output
        self.skip_dropout = 0.0
        self.num_inputs = pools.shape.inputs
        self.preprocess = nn.ModuleList(projections(plan, self.num_inputs, affine=False))
        self.operations = nn.ModuleList(
            nn.ModuleList(self._built(op, source) for op in edge.candidates)
            for (_, source), edge in zip(pools.positions, pools.edges, strict=True)
        )
        # Where the images stay as they are, an auxiliary skip needs no module.
        self.auxiliary_skips = nn.ModuleDict(
            {
                str(edge): build(Skip(), plan.channels, 2, affine=False)
                for edge, (_, source) in enumerate(pools.positions)
                if auxiliary_skips and self.stride(source) == 2
            }
        )
        self.pool_bns = nn.ModuleDict()
        self._match_pool_bns()
        self._edges: dict[int, list[int]] = {}  # edges into each node
        for edge, (state, _) in enumerate(pools.positions):
            self._edges.setdefault(state, []).append(edge)
        self._plans: dict[_PlanKey, NodePlan] = {}

    def stride(self, source: int) -> int:
        """The stride of the edges that leave a state."""
        return 2 if self.plan.reduces and source < self.num_inputs else 1

    def _built(self, op: Operation, source: int) -> nn.Module:
        if isinstance(op, Pool):
            return nn.Identity()  # its state pools for all edges
        return build(op, self.width, self.stride(source), affine=False)

    def _match_pool_bns(self) -> None:
        """A BN for every pooling that some edge of a state holds; others are dropped."""
        names = {
            bn_name(source, op.kind, op.kernel)
            for (_, source), edge in zip(self.pools.positions, self.pools.edges, strict=True)
            for op in edge.candidates
            if isinstance(op, Pool)
        }
        for name in set(self.pool_bns) - names:
            del self.pool_bns[name]
        like = next(filter(torch.is_floating_point, self.state_dict().values()), None)
        for name in sorted(names - set(self.pool_bns)):
            bn = nn.BatchNorm2d(self.width, affine=False)
            if like is not None:
                bn.to(like.device, like.dtype)
            self.pool_bns[name] = bn.train(self.training)

    def evolve(self, change: CellChange, after: CellPools, generator: torch.Generator) -> None:
        """Survivors keep their modules; children are made from their parents on the same edge."""
        edges = zip(self.pools.positions, self.pools.edges, change.edges, strict=True)
        for number, ((_, source), edge, edge_change) in enumerate(edges):
            modules = dict(zip(edge.candidates, self.operations[number].children(), strict=True))
            children = [
                self._child(added, modules[added.parent], source, generator)
                for added in edge_change.added
            ]
            for pruned in edge_change.pruned:
                del modules[pruned.op]
            self.operations[number] = nn.ModuleList([*modules.values(), *children])
        self.pools = after
        self._match_pool_bns()
        self._plans = {}

    def _child(
        self, added: Added, parent: nn.Module, source: int, generator: torch.Generator
    ) -> nn.Module:
        if isinstance(added.op, Pool):
            return self._built(added.op, source)  # nothing to inherit
        stride = self.stride(source)
        return inherit(parent, added.parent, added.morphism, self.width, stride, generator)

    def forward(
        self,
        before_last: Tensor,
        last: Tensor,
        mixing: Sequence[Tensor],
        generator: torch.Generator | None,
        active: ActiveCell | None = None,
        edge_weights: Sequence[Tensor] | None = None,
    ) -> Tensor:
        states = self.inputs(before_last, last, generator)
        self.add_nodes(states, mixing, generator, active, edge_weights)
        return self.joined(states)

    def inputs(
        self, before_last: Tensor, last: Tensor, generator: torch.Generator | None
    ) -> list[StateFeatures]:
        """The first states: the outputs of one or two cells before, at this cell's size."""
        states = [before_last, last][-self.num_inputs :]
        if self.preprocess:
            pairs = zip(states, self.preprocess, strict=True)
            states = [self._projected(x, module) for x, module in pairs]
        else:
            states = [x.contiguous(memory_format=torch.channels_last) for x in states]
        return [
            StateFeatures(self, state, x, generator, self.width) for state, x in enumerate(states)
        ]

    def add_nodes(
        self,
        states: list[StateFeatures],
        mixing: Sequence[Tensor],
        generator: torch.Generator | None,
        active: ActiveCell | None,
        edge_weights: Sequence[Tensor] | None = None,
    ) -> None:
        """Compute the nodes that are not among the states yet, from their active candidates.

        What goes past the candidates of an edge is weighed by `edge_weights`, or by 1.
        """
        like = states[self.num_inputs - 1][RAW]
        height, width = (-(-size // self.stride(0)) for size in like.shape[2:])
        compute = self._fused_node if self.execution == "fused" else self._plain_node
        for state in range(len(states), self.pools.num_states):
            plan = self._plan(state, height, width, active)
            if plan.candidates:
                node = compute(plan, states, mixing)
            else:
                node = like.new_zeros(like.shape[0], self.width, height, width)
                node = node.contiguous(memory_format=torch.channels_last)
            if self.partial > 1:
                node = self._with_rest(node, plan, states, edge_weights)
            states.append(StateFeatures(self, state, node, generator, self.width))

    def _with_rest(
        self,
        node: Tensor,
        plan: NodePlan,
        states: Sequence[StateFeatures],
        edge_weights: Sequence[Tensor] | None,
    ) -> Tensor:
        """All channels of a node, whose first ones the candidates made, shuffled."""
        rest: Tensor | None = None
        for edge in plan.edges:
            x = states[self.pools.positions[edge][1]][REST]
            x = x if edge_weights is None else x * edge_weights[edge]
            rest = x if rest is None else rest + x
        if rest is None:
            others = self.plan.channels - self.width
            rest = node.new_zeros(node.shape[0], others, *node.shape[2:])
        return shuffled(torch.cat([node, rest], dim=1), self.partial)

    def joined(self, states: Sequence[StateFeatures]) -> Tensor:
        """The cell's output."""
        return joined([state.all_channels for state in states[self.num_inputs :]], self.output)

    def _fused_node(
        self, plan: NodePlan, states: Sequence[StateFeatures], mixing: Sequence[Tensor]
    ) -> Tensor:
        tensors = [states[state][feature] for state, feature in plan.features]
        tensors += [mixing[edge] for edge in plan.edges]
        if self.auxiliary:
            tensors.append(tensors[0].new_full((1,), self.auxiliary))
        tensors += plan.parameters()
        return mix(plan.candidates, tensors, self.training, self.recompute)

    def _plain_node(
        self, plan: NodePlan, states: Sequence[StateFeatures], mixing: Sequence[Tensor]
    ) -> Tensor:
        modules = [module for *_, module in plan.modules]
        features = [states[state][feature] for _, (state, feature), _ in plan.modules]
        weights = [
            self.auxiliary if index is None else mixing[edge][index]
            for (edge, index), *_ in plan.modules
        ]
        if not (self.recompute and torch.is_grad_enabled()):
            return _mixed(modules, features, weights)
        return recomputed(_mixed, modules, modules, features, weights)

    def _projected(self, x: Tensor, module: nn.Module) -> Tensor:
        assert isinstance(module, ReluConvBN | FactorizedReduction)
        if self.execution == "plain":
            return module(x)
        feature = FACTORIZED if isinstance(module, FactorizedReduction) else RELU
        link = _pointwise_link(module)
        candidate = MixedCandidate(feature=0, edge=None, index=0, first=1, chain=(link,))
        tensors = [features_of_output(self, x)[feature], *link.parameters()]
        return mix([candidate], tensors, self.training, self.recompute)

    def _plan(self, state: int, height: int, width: int, active: ActiveCell | None) -> NodePlan:
        """The plan for computing a node; plans are made once."""
        chosen = None if active is None else tuple(active[edge] for edge in self._edges[state])
        dropping = self.training and self.skip_dropout > 0
        key = (state, height, width, dropping, self.auxiliary > 0, chosen)
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            plan = self._plans[key] = self._make_plan(*key)
        return plan

    def _make_plan(
        self,
        state: int,
        height: int,
        width: int,
        dropping: bool,
        auxiliary: bool,
        chosen: tuple[tuple[int, ...], ...] | None,
    ) -> NodePlan:
        edges = self._edges[state]
        if chosen is None:
            chosen = tuple(tuple(range(len(self.pools.edges[edge].candidates))) for edge in edges)
        else:  # an edge without any active candidate takes no part
            edges = [edge for edge, indices in zip(edges, chosen, strict=True) if indices]
            chosen = tuple(indices for indices in chosen if indices)
        drafts: list[tuple[tuple[int, Feature], int, int | None, list[Link]]] = []
        modules: list[tuple[tuple[int, int | None], tuple[int, Feature], nn.Module]] = []
        for edge, indices in zip(edges, chosen, strict=True):
            source = self.pools.positions[edge][1]
            for index in indices:
                if isinstance(self.pools.edges[edge].candidates[index], Zero):
                    continue
                feature, chain = self._fast_path(edge, index, height, width, dropping)
                drafts.append(((source, feature), edge, index, chain))
                module = cast(nn.ModuleList, self.operations[edge])[index]
                if isinstance(module, ConvChain | ReluFirst):
                    feature = RELU
                elif feature.name == "module":
                    feature = RAW
                modules.append(((edge, index), (source, feature), module))
            if auxiliary:
                feature, chain, read, module = self._auxiliary_path(edge)
                drafts.append(((source, feature), edge, None, chain))
                modules.append(((edge, None), (source, read), module))
        features = list(dict.fromkeys(feature for feature, *_ in drafts))
        candidates: list[MixedCandidate] = []
        first = len(features) + len(edges) + auxiliary
        for feature, edge, index, chain in drafts:
            # All auxiliary skips share one weight, the last.
            column = len(edges) if index is None else edges.index(edge)
            weights = len(features) + column
            candidates.append(
                MixedCandidate(features.index(feature), weights, index or 0, first, tuple(chain))
            )
            first += sum(len(link.convs) for link in chain)
        return NodePlan(features, edges, candidates, modules)

    def _auxiliary_path(self, edge: int) -> tuple[Feature, list[Link], Feature, nn.Module]:
        """An edge's auxiliary skip: feature and links if fused, feature and module if plain."""
        if str(edge) not in self.auxiliary_skips:
            return RAW, [], RAW, nn.Identity()
        module = self.auxiliary_skips[str(edge)]
        assert isinstance(module, FactorizedReduction)
        return FACTORIZED, [_pointwise_link(module)], RELU, module

    def _fast_path(
        self, edge: int, index: int, height: int, width: int, dropping: bool
    ) -> tuple[Feature, list[Link]]:
        """The feature that a candidate reads, and the links that it applies to it."""
        op = self.pools.edges[edge].candidates[index]
        module = self.operations[edge][index]  # pyright: ignore[reportIndexIssue]
        match op:
            case Conv():
                stride = self.stride(self.pools.positions[edge][1])
                return _conv_path(op, module, stride, height, width)
            case PlainConv(kernel=1):
                stride = self.stride(self.pools.positions[edge][1])
                return (RELU if stride == 1 else EVERY_SECOND), [_pointwise_link(module)]
            case Pool():
                return Feature(op.kind, op.kernel), []
            case Skip() if isinstance(module, FactorizedReduction):
                return FACTORIZED, [_pointwise_link(module)]
            case Skip():
                return (Feature("dropped", edge, index) if dropping else RAW), []
            case _:  # not `assert_never`: programs register more; their modules run as they are
                return Feature("module", edge, index), []


def _mixed(
    modules: Sequence[nn.Module], features: Sequence[Tensor], weights: Sequence[Tensor | float]
) -> Tensor:
    """The weighted sum of what modules make of their features, by PyTorch's own means."""
    total: Tensor | None = None
    for module, x, weight in zip(modules, features, weights, strict=True):
        output = module(x, True) if isinstance(module, ConvChain | ReluFirst) else module(x)
        term = weight * output
        total = term if total is None else total + term
    assert total is not None, "a node has at least one candidate"
    return total


def shuffled(x: Tensor, groups: int) -> Tensor:
    """The first channel of every group, then the second of every one, and so on."""
    n, c, height, width = x.shape
    grouped = x.permute(0, 2, 3, 1).reshape(n, height, width, groups, c // groups)
    return grouped.transpose(3, 4).reshape(n, height, width, c).permute(0, 3, 1, 2)


def _pointwise_link(module: ReluConvBN | FactorizedReduction) -> Link:
    factorized = isinstance(module, FactorizedReduction)
    convs = (module.first, module.second) if factorized else (module.conv,)
    return PointwiseLink(convs, module.bn)


def _conv_path(
    op: Conv, module: ConvChain, stride: int, height: int, width: int
) -> tuple[Feature, list[Link]]:
    dilation = op.dilation if op.kernel > 1 else 1
    splits = dilation > 1 and height % dilation == 0 and width % dilation == 0
    phases, inner = (dilation, 1) if splits else (1, dilation)
    if stride == 1:
        feature, shape = Feature("phases", phases) if splits else RELU, (1, inner, phases)
    elif op.kernel == 1 or dilation == 2:
        # The only pixels that it sees, and next to each other there.
        feature, shape = EVERY_SECOND, (1, 1, 1)
    else:
        feature, shape = RELU, (2, dilation, 1)
    links: list[Link] = []
    for conv in module:
        assert isinstance(conv, SeparableConv)
        links.append(SeparableLink((conv.depthwise, conv.pointwise), conv.bn, *shape))
        shape = (1, inner, phases)
    return feature, links

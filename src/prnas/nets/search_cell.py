"""A cell of the supernet: every edge holds its whole pool of candidates.

It can be computed in two ways, on the same weights. `fused` mixes all candidates of a node by
hand-written kernels (see `prnas.nets.kernels.mixture`). `plain` runs one candidate's module after
the other and leaves the rest to PyTorch: on any device, in mixed precision, and differentiable as
often as one likes.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from prnas.config.choices import Execution
from prnas.nets.inheritance import inherit
from prnas.nets.kernels.batch_norm import FrozenStatistics
from prnas.nets.kernels.features import EVERY_SECOND, FACTORIZED, RAW, RELU, Feature, StateFeatures
from prnas.nets.kernels.links import Link
from prnas.nets.kernels.mixture import MixedCandidate, mix
from prnas.nets.network import mask
from prnas.nets.operations import (
    ConvChain,
    FactorizedReduction,
    ReluConvBN,
    ReluFirst,
    SeparableConv,
    build,
    pool,
    preprocess,
)
from prnas.nets.search_links import PointwiseLink, SeparableLink
from prnas.space.change import Added, CellChange
from prnas.space.genotype import NUM_INPUTS
from prnas.space.network_plan import CellPlan
from prnas.space.network_size import Output
from prnas.space.operations import Conv, Operation, Pool, Skip, Zero
from prnas.space.pools import CellPools

# Indices of the candidates that are computed, for each edge of a cell.
ActiveCell = tuple[tuple[int, ...], ...]
_PlanKey = tuple[int, int, int, bool, tuple[tuple[int, ...], ...] | None]
_MOST_PLANS = 4096  # of nodes with sampled candidates; beyond them all are made again


@dataclass(frozen=True, slots=True)
class NodePlan:
    """How a node is computed: which features it reads, over which edges, by which candidates."""

    features: list[tuple[int, Feature]]  # (state, feature)
    edges: list[int]
    candidates: list[MixedCandidate]
    # The same for plain execution: (edge, index), (state, feature that it reads), module.
    modules: list[tuple[tuple[int, int], tuple[int, Feature], nn.Module]]

    def parameters(self) -> list[Tensor]:
        """The weights of all candidates, as the modules hold them now."""
        return [
            weight for one in self.candidates for link in one.chain for weight in link.parameters()
        ]


class SearchCell(nn.Module):
    """One cell. `operations[edge][place]` is the module of a candidate and owns its weights.

    The pools of a state share one BN for all edges (without affine parameters it is the same), in
    `pool_bns`. A node without any candidate that computes something is zero.
    """

    def __init__(
        self,
        pools: CellPools,
        plan: CellPlan,
        output: Output,
        recompute: bool,
        execution: Execution,
    ) -> None:
        super().__init__()
        self.pools, self.plan, self.recompute = pools, plan, recompute
        self.execution: Execution = execution
        self.output: Output = output
        self.skip_dropout = 0.0
        self.preprocess = nn.ModuleList(
            [
                preprocess(plan.c_before_last, plan.channels, plan.after_reduction, affine=False),
                preprocess(plan.c_last, plan.channels, False, affine=False),
            ]
        )
        self.operations = nn.ModuleList(
            nn.ModuleList(self._built(op, source) for op in edge.candidates)
            for (_, source), edge in zip(pools.positions, pools.edges, strict=True)
        )
        self.pool_bns = nn.ModuleDict()
        self._match_pool_bns()
        self._edges: dict[int, list[int]] = {}  # into each node
        for edge, (state, _) in enumerate(pools.positions):
            self._edges.setdefault(state, []).append(edge)
        self._plans: dict[_PlanKey, NodePlan] = {}

    def _stride(self, source: int) -> int:
        return 2 if self.plan.reduces and source < NUM_INPUTS else 1

    def _built(self, op: Operation, source: int) -> nn.Module:
        if isinstance(op, Pool):
            return nn.Identity()  # its state pools for all edges
        return build(op, self.plan.channels, self._stride(source), affine=False)

    def _match_pool_bns(self) -> None:
        """A BN for every pooling that some edge of a state holds; others are dropped."""
        held = {
            _bn_name(source, op)
            for (_, source), edge in zip(self.pools.positions, self.pools.edges, strict=True)
            for op in edge.candidates
            if isinstance(op, Pool)
        }
        for name in list(self.pool_bns):
            if name not in held:
                del self.pool_bns[name]
        like = next(self.preprocess.parameters())
        for name in sorted(held):
            if name not in self.pool_bns:
                bn = nn.BatchNorm2d(self.plan.channels, affine=False)
                self.pool_bns[name] = bn.to(like.device, like.dtype).train(self.training)

    def evolve(self, change: CellChange, after: CellPools, generator: torch.Generator) -> None:
        """Survivors keep their modules; children are made from their parents on the same edge."""
        for place, (one, edge) in enumerate(zip(change.edges, self.pools.edges, strict=True)):
            source = self.pools.positions[place][1]
            modules = dict(zip(edge.candidates, self.operations[place].children(), strict=True))
            children = [self._child(added, modules, source, generator) for added in one.added]
            pruned = {gone.op for gone in one.pruned}
            stay = [module for op, module in modules.items() if op not in pruned]
            self.operations[place] = nn.ModuleList([*stay, *children])
        self.pools = after
        self._match_pool_bns()
        self._plans = {}

    def _child(
        self,
        added: Added,
        modules: dict[Operation, nn.Module],
        source: int,
        generator: torch.Generator,
    ) -> nn.Module:
        if isinstance(added.op, Pool):
            return self._built(added.op, source)  # nothing to inherit
        parent, stride = modules[added.parent], self._stride(source)
        return inherit(parent, added.parent, added.morphism, self.plan.channels, stride, generator)

    def forward(
        self,
        before_last: Tensor,
        last: Tensor,
        mixing: Sequence[Tensor],
        generator: torch.Generator | None,
        active: ActiveCell | None = None,
    ) -> Tensor:
        states = self.inputs(before_last, last, generator)
        self.add_nodes(states, mixing, generator, active)
        return self.joined(states)

    def inputs(
        self, before_last: Tensor, last: Tensor, generator: torch.Generator | None
    ) -> list[StateFeatures]:
        """The first two states: the outputs of two cells before, at this cell's size."""
        projected = (
            self._projected(before_last, self.preprocess[0]),
            self._projected(last, self.preprocess[1]),
        )
        return [self._source(x, state, generator) for state, x in enumerate(projected)]

    def add_nodes(
        self,
        states: list[StateFeatures],
        mixing: Sequence[Tensor],
        generator: torch.Generator | None,
        active: ActiveCell | None,
    ) -> None:
        """Compute the nodes that are not among the states yet, from their active candidates."""
        height, width = (-(-size // self._stride(0)) for size in states[1].x.shape[2:])
        compute = self._fused_node if self.execution == "fused" else self._plain_node
        for state in range(len(states), NUM_INPUTS + self.pools.num_nodes):
            plan = self._plan(state, height, width, active)
            if plan.candidates:
                node = compute(plan, states, mixing)
            else:
                x = states[1].x
                node = x.new_zeros(x.shape[0], self.plan.channels, height, width)
                node = node.contiguous(memory_format=torch.channels_last)
            states.append(self._source(node, state, generator))

    def joined(self, states: Sequence[StateFeatures]) -> Tensor:
        """The cell's output."""
        nodes = [state.x for state in states[NUM_INPUTS:]]
        if self.output == "concat":
            return torch.cat(nodes, dim=1)
        return torch.stack(nodes).mean(dim=0)

    def _fused_node(
        self, plan: NodePlan, states: Sequence[StateFeatures], mixing: Sequence[Tensor]
    ) -> Tensor:
        tensors = [states[state][feature] for state, feature in plan.features]
        tensors += [mixing[edge] for edge in plan.edges]
        return mix(plan.candidates, [*tensors, *plan.parameters()], self.training, self.recompute)

    def _plain_node(
        self, plan: NodePlan, states: Sequence[StateFeatures], mixing: Sequence[Tensor]
    ) -> Tensor:
        modules = [module for _, _, module in plan.modules]
        features = [states[state][feature] for _, (state, feature), _ in plan.modules]
        weights = [mixing[edge][index] for (edge, index), _, _ in plan.modules]
        if not (self.recompute and torch.is_grad_enabled()):
            return _mixed(modules, features, weights)
        node = checkpoint(
            _mixed,
            modules,
            features,
            weights,
            use_reentrant=False,
            preserve_rng_state=False,  # nothing random is computed again
            context_fn=lambda: (nullcontext(), FrozenStatistics(modules)),
        )
        return cast(Tensor, node)

    def _projected(self, x: Tensor, module: nn.Module) -> Tensor:
        assert isinstance(module, ReluConvBN | FactorizedReduction)
        if self.execution == "plain":
            return module(x)
        feature = FACTORIZED if isinstance(module, FactorizedReduction) else RELU
        link = PointwiseLink(module)
        candidate = MixedCandidate(feature=0, edge=None, index=0, first=1, chain=(link,))
        tensors = [StateFeatures(x, _no_other)[feature], *link.parameters()]
        return mix([candidate], tensors, self.training, self.recompute)

    def _source(self, x: Tensor, state: int, generator: torch.Generator | None) -> StateFeatures:
        def other(x: Tensor, feature: Feature) -> Tensor:
            match feature.name:
                case "max" | "avg":
                    pooled = pool(x, feature.name, feature.number, self._stride(state))
                    return self.pool_bns[_bn_name(state, Pool(feature.name, feature.number))](
                        pooled
                    )
                case "dropped":
                    return x * mask(x, x.shape, self.skip_dropout, generator)
                case _:
                    edge, place = divmod(feature.number, _PLACES)
                    made = self._module(edge, place)(x)
                    return made.contiguous(memory_format=torch.channels_last)

        return StateFeatures(x, other)

    def _plan(self, state: int, height: int, width: int, active: ActiveCell | None) -> NodePlan:
        """How a node is computed; plans are made once."""
        edges = self._edges[state]
        chosen = None if active is None else tuple(active[edge] for edge in edges)
        dropping = self.training and self.skip_dropout > 0
        key = (state, height, width, dropping, chosen)
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
        chosen: tuple[tuple[int, ...], ...] | None,
    ) -> NodePlan:
        edges = self._edges[state]
        if chosen is None:
            chosen = tuple(tuple(range(len(self.pools.edges[edge].candidates))) for edge in edges)
        else:  # an edge without any active candidate takes no part
            active = [
                (edge, indices) for edge, indices in zip(edges, chosen, strict=True) if indices
            ]
            edges, chosen = [edge for edge, _ in active], tuple(indices for _, indices in active)
        drafts: list[tuple[tuple[int, Feature], int, int, list[Link]]] = []
        modules: list[tuple[tuple[int, int], tuple[int, Feature], nn.Module]] = []
        for edge, indices in zip(edges, chosen, strict=True):
            source = self.pools.positions[edge][1]
            for index in indices:
                op = self.pools.edges[edge].candidates[index]
                if isinstance(op, Zero):
                    continue
                module = self._module(edge, index)
                number = edge * _PLACES + index
                feature, chain = _fast_path(
                    op, module, self._stride(source), height, width, number, dropping
                )
                drafts.append(((source, feature), edge, index, chain))
                reads = RELU if isinstance(module, ConvChain | ReluFirst) else feature
                if reads.name == "module":
                    reads = RAW
                modules.append(((edge, index), (source, reads), module))
        features = list(dict.fromkeys(feature for feature, _, _, _ in drafts))
        candidates: list[MixedCandidate] = []
        first = len(features) + len(edges)
        for feature, edge, index, chain in drafts:
            candidates.append(
                MixedCandidate(
                    feature=features.index(feature),
                    edge=len(features) + edges.index(edge),
                    index=index,
                    first=first,
                    chain=tuple(chain),
                )
            )
            first += sum(len(link.parameters()) for link in chain)
        return NodePlan(features, edges, candidates, modules)

    def _module(self, edge: int, index: int) -> nn.Module:
        return cast(nn.ModuleList, self.operations[edge])[index]


def _mixed(
    modules: Sequence[nn.Module], features: Sequence[Tensor], weights: Sequence[Tensor]
) -> Tensor:
    """The weighted sum of what modules make of their features, by PyTorch's own means."""
    total: Tensor | None = None
    for module, x, weight in zip(modules, features, weights, strict=True):
        made = module(x, True) if isinstance(module, ConvChain | ReluFirst) else module(x)
        term = weight * made
        total = term if total is None else total + term
    assert total is not None, "a node has at least one candidate"
    return total


_PLACES = 10_000  # more than any pool has; packs (edge, place) into a feature's number


def _bn_name(state: int, op: Pool) -> str:
    return f"{state}-{op.kind}-{op.kernel}"


def _no_other(x: Tensor, feature: Feature) -> Tensor:
    raise KeyError(feature)


def _fast_path(
    op: Operation,
    module: nn.Module,
    stride: int,
    height: int,
    width: int,
    number: int,
    dropping: bool,
) -> tuple[Feature, list[Link]]:
    """The feature that a candidate reads, and the links that it applies to it."""
    match op:
        case Conv():
            assert isinstance(module, ConvChain)
            return _conv_recipe(op, module, stride, height, width)
        case Pool():
            return Feature(op.kind, op.kernel), []
        case Skip():
            if isinstance(module, FactorizedReduction):
                return FACTORIZED, [PointwiseLink(module)]
            return (Feature("dropped", number) if dropping else RAW), []
        case _:
            return Feature("module", number), []  # any other operation runs as it is


def _conv_recipe(
    op: Conv, module: ConvChain, stride: int, height: int, width: int
) -> tuple[Feature, list[Link]]:
    dilation = op.dilation if op.kernel > 1 else 1
    splits = dilation > 1 and height % dilation == 0 and width % dilation == 0
    phases = dilation if splits else 1
    inner = 1 if splits else dilation
    first, *rest = (link for link in module if isinstance(link, SeparableConv))
    links: list[Link] = []
    if stride == 1:
        feature = Feature("phases", phases) if splits else RELU
        links.append(SeparableLink(first, 1, inner, phases))
    elif op.kernel == 1 or dilation == 2:
        feature = EVERY_SECOND  # the only pixels that it sees, and next to each other there
        links.append(SeparableLink(first, 1, 1, 1))
    else:
        feature = RELU
        links.append(SeparableLink(first, 2, dilation, 1))
    links += [SeparableLink(link, 1, inner, phases) for link in rest]
    return feature, links

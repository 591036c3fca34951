"""A cell of the supernet: every edge holds its whole pool of candidates."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from prnas.nets.inheritance import inherit
from prnas.nets.kernels.features import EVERY_SECOND, FACTORIZED, RAW, RELU, Feature, StateFeatures
from prnas.nets.kernels.links import Link
from prnas.nets.kernels.mixture import MixedCandidate, mix
from prnas.nets.network import mask
from prnas.nets.operations import (
    ConvChain,
    FactorizedReduction,
    ReluConvBN,
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


@dataclass(frozen=True, slots=True)
class NodePlan:
    """How a node is computed: which features it reads, over which edges, by which candidates."""

    features: list[tuple[int, Feature]]  # (state, feature)
    edges: list[int]
    candidates: list[MixedCandidate]

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

    def __init__(self, pools: CellPools, plan: CellPlan, output: Output, recompute: bool) -> None:
        super().__init__()
        self.pools, self.plan, self.recompute = pools, plan, recompute
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
        self._plans: dict[tuple[int, int, bool], list[NodePlan]] = {}

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
    ) -> Tensor:
        states = [
            self._projected(before_last, self.preprocess[0]),
            self._projected(last, self.preprocess[1]),
        ]
        height, width = (-(-size // self._stride(0)) for size in states[1].shape[2:])
        sources = [self._source(x, state, generator) for state, x in enumerate(states)]
        nodes: list[Tensor] = []
        for plan in self._planned(height, width):
            if plan.candidates:
                tensors = [sources[state][feature] for state, feature in plan.features]
                tensors += [mixing[edge] for edge in plan.edges]
                node = mix(
                    plan.candidates, [*tensors, *plan.parameters()], self.training, self.recompute
                )
            else:
                node = last.new_zeros(last.shape[0], self.plan.channels, height, width)
                node = node.contiguous(memory_format=torch.channels_last)
            sources.append(self._source(node, len(sources), generator))
            nodes.append(node)
        if self.output == "concat":
            return torch.cat(nodes, dim=1)
        return torch.stack(nodes).mean(dim=0)

    def _projected(self, x: Tensor, module: nn.Module) -> Tensor:
        assert isinstance(module, ReluConvBN | FactorizedReduction)
        feature = FACTORIZED if isinstance(module, FactorizedReduction) else RELU
        link = PointwiseLink(module)
        one = MixedCandidate(feature=0, edge=None, index=0, first=1, chain=(link,))
        tensors = [StateFeatures(x, _no_other)[feature], *link.parameters()]
        return mix([one], tensors, self.training, self.recompute)

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
                    made = self.operations[edge][place](x)  # pyright: ignore[reportIndexIssue]
                    return made.contiguous(memory_format=torch.channels_last)

        return StateFeatures(x, other)

    def _planned(self, height: int, width: int) -> list[NodePlan]:
        dropping = self.training and self.skip_dropout > 0
        key = (height, width, dropping)
        if key not in self._plans:
            states = range(NUM_INPUTS, NUM_INPUTS + self.pools.num_nodes)
            self._plans[key] = [self._plan_node(state, height, width, dropping) for state in states]
        return self._plans[key]

    def _plan_node(self, state: int, height: int, width: int, dropping: bool) -> NodePlan:
        edges = [place for place, (to, _) in enumerate(self.pools.positions) if to == state]
        drafts: list[tuple[tuple[int, Feature], int, int, list[Link]]] = []
        for edge in edges:
            source = self.pools.positions[edge][1]
            for place, op in enumerate(self.pools.edges[edge].candidates):
                if isinstance(op, Zero):
                    continue
                module = self.operations[edge][place]  # pyright: ignore[reportIndexIssue]
                number = edge * _PLACES + place
                feature, chain = _fast_path(
                    op, module, self._stride(source), height, width, number, dropping
                )
                drafts.append(((source, feature), edge, place, chain))
        features = list(dict.fromkeys(feature for feature, _, _, _ in drafts))
        candidates: list[MixedCandidate] = []
        first = len(features) + len(edges)
        for feature, edge, place, chain in drafts:
            candidates.append(
                MixedCandidate(
                    feature=features.index(feature),
                    edge=len(features) + edges.index(edge),
                    index=place,
                    first=first,
                    chain=tuple(chain),
                )
            )
            first += sum(len(link.parameters()) for link in chain)
        return NodePlan(features, edges, candidates)


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

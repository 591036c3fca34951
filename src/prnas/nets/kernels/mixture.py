"""A node of the supernet: the weighted sum of all candidates on all its edges, in one step.

The candidates of a node are not modules that run one by one. Features of a source state (its ReLU,
its pools) are computed once for all edges that leave it; every candidate's last pointwise product,
BN and mixing weight are folded (see `prnas.nets.kernels.folding`) and added straight into the node.
Saved for the backward pass is each link's input and depthwise output, or, with `recompute`,
only the features.
"""
# pyright: reportIncompatibleMethodOverride=false

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from prnas.nets.kernels.depthwise_conv import Strips
from prnas.nets.kernels.folding import (
    FoldedBN,
    FoldedStack,
    ScaledProduct,
    complete,
    update_running_statistics,
)
from prnas.nets.kernels.layouts import as_images, as_matrix, matrix_view, merge_phases, split_phases
from prnas.nets.kernels.links import Link, next_input, next_input_gradient


@dataclass(frozen=True, slots=True)
class MixedCandidate:
    """A candidate of a node, by indices into the node's tensors.

    `feature` is what it reads, `edge` the mixing weights of its edge (`None`: always 1), `index`
    its own among them, and `first` its first parameter. Without a chain the feature itself is the
    candidate's output.
    """

    feature: int
    edge: int | None
    index: int
    first: int
    chain: tuple[Link, ...]


@dataclass(slots=True)
class _SavedLink:
    """A link's part of the forward pass."""

    product: ScaledProduct
    x: Tensor | None  # `None` where it follows cheaply from the link before
    read: Tensor  # what the product reads
    pixels: Tensor  # the same as a matrix


def mix(
    candidates: Sequence[MixedCandidate], tensors: Sequence[Tensor], training: bool, recompute: bool
) -> Tensor:
    """The node. `tensors`: features, then mixing weights of the edges, then parameters."""
    device = tensors[0].device.type
    # Batch statistics need single precision all the same.
    if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
        with torch.autocast(device, enabled=False):
            return mix(candidates, [tensor.float() for tensor in tensors], training, recompute)
    node: Any = _Mixture.apply(candidates, training, recompute, *tensors)
    return node


class _Mixture(Function):
    @staticmethod
    def forward(
        ctx: Any,
        candidates: Sequence[MixedCandidate],
        training: bool,
        recompute: bool,
        *tensors: Tensor,
    ) -> Tensor:
        ctx.candidates, ctx.training, ctx.recompute = candidates, training, recompute
        ctx.save_for_backward(*tensors)
        runs = _runs(candidates, tensors)
        ctx.runs = [] if recompute else runs
        if not recompute:
            _run_chains(runs, training)
        sums: dict[int, Tensor] = {}  # sums by the number of phases
        products: list[ScaledProduct] = []
        biases: list[Tensor] = []
        for run in runs:
            x, weight, chain = run.x, run.weight, run.chain
            if not run.links:
                assert weight is not None
                if 1 in sums:
                    sums[1].addcmul_(x, weight)
                else:
                    sums[1] = (x * weight).contiguous(memory_format=torch.channels_last)
                continue
            if recompute:
                _run_chains([run], training)
            products += [saved.product for saved in chain]
            last, phases = chain[-1], run.links[-1].phases
            product = last.product
            if phases in sums:
                product.add_to(matrix_view(sums[phases]), last.pixels)
            else:
                sums[phases] = as_images(product.add_to(None, last.pixels), last.read)
            biases.append(product.bias)
            if recompute:
                # Nothing stays, not even small matrices: between the large tensors that come and
                # go, they would tear the heap into pieces that no large one fits into.
                if training:
                    update_running_statistics(products)
                products.clear()
                chain.clear()
                del last, product
        if training and products:
            update_running_statistics(products)
        return _total(sums, biases)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        if ctx.runs is None:
            raise RuntimeError("a supernet's graph can be differentiated only once")
        grad = grad.contiguous(memory_format=torch.channels_last)
        tensors: tuple[Tensor, ...] = ctx.saved_tensors
        node = _Backward(tensors, ctx.needs_input_grad[3:], grad)
        if ctx.recompute:
            node.make_room(ctx.candidates)
            runs = _runs(ctx.candidates, tensors)
        else:
            runs = ctx.runs
            node.fold(ctx.candidates, [run.chain for run in runs])
        for candidate, run in zip(ctx.candidates, runs, strict=True):
            if run.links:
                if ctx.recompute:
                    _run_chains([run], ctx.training)
                node.chain(candidate, run.chain)
                run.chain.clear()  # the large tensors go now, not when the graph does
            else:
                node.plain(candidate)
        ctx.runs = None
        return None, None, None, *node.result()


class _Run(NamedTuple):
    """A candidate's forward pass."""

    links: Sequence[Link]
    x: Tensor
    weight: Tensor | None
    chain: list[_SavedLink]


def _runs(candidates: Sequence[MixedCandidate], tensors: Sequence[Tensor]) -> list[_Run]:
    edges = {each.edge for each in candidates if each.edge is not None}
    mixing = {edge: tensors[edge].unbind() for edge in edges}
    weights = [None if each.edge is None else mixing[each.edge][each.index] for each in candidates]
    return [
        _Run(each.chain, tensors[each.feature], weight, [])
        for each, weight in zip(candidates, weights, strict=True)
    ]


def _run_chains(runs: Sequence[_Run], training: bool) -> None:
    """All links but what adds them to the node. The last ones go together, and so on from there."""
    for stage in range(-max(len(run.links) for run in runs), 0):
        products = [_run_link(run, stage, training) for run in runs if len(run.links) >= -stage]
        complete(products)


def _run_link(run: _Run, stage: int, training: bool) -> ScaledProduct:
    link, chain, x = run.links[stage], run.chain, run.x
    if chain:
        before = chain[-1]
        x = _next_input(before, run.links[stage - 1], link)
    read = link.before_product(x)
    pixels = as_matrix(read)
    product = link.product(pixels, run.weight if stage == -1 else None, training)
    rebuild = chain and read is not x and chain[-1].product.keeps_output
    chain.append(_SavedLink(product, None if rebuild else x, read, pixels))
    return product


def _next_input(before: _SavedLink, link: Link, following: Link) -> Tensor:
    output = before.product.output(before.pixels)
    return next_input(as_images(output, before.read), link.phases, following.phases)


def _total(sums: dict[int, Tensor], biases: list[Tensor]) -> Tensor:
    total = sums.pop(1, None)
    for phases, images in sums.items():
        merged = merge_phases(images, phases)
        total = merged if total is None else total.add_(merged)
    assert total is not None, "a node has at least one candidate"
    if biases:
        total.add_(torch.stack(biases).sum(0)[:, None, None])
    return total


class _Backward:
    """The backward pass of one node: gradients gathered candidate by candidate."""

    def __init__(self, tensors: Sequence[Tensor], needed: Sequence[bool], grad: Tensor) -> None:
        self.tensors, self.needed, self.grad = tensors, needed, grad
        self.grad_sum = as_matrix(grad).sum(0)
        self.by_phases = {1: grad}
        self.strips: defaultdict[int, Strips] = defaultdict(dict)
        self.edge: int | None = None  # the edge whose features have strips
        self.gradients: list[Tensor | None] = [None] * len(tensors)
        self.mixing: defaultdict[int, dict[int, Tensor]] = defaultdict(dict)
        self.along: list[tuple[int, int, Tensor]] = []  # edge, index, and what adds up to its own
        self.room: dict[int, Tensor] = {}  # memory for gradients of parameters

    def make_room(self, candidates: Sequence[MixedCandidate]) -> None:
        """Take the memory of all parameters' gradients at once, before large tensors come and go.

        Taken one by one between those, they would tear the heap into pieces: on a CPU the peak was
        a fifth higher.
        """
        first = min((each.first for each in candidates), default=len(self.tensors))
        needed = [index for index in range(first, len(self.tensors)) if self.needed[index]]
        sizes = [self.tensors[index].numel() for index in needed]
        pieces = self.grad.new_empty(sum(sizes)).split(sizes)
        for index, piece in zip(needed, pieces, strict=True):
            self.room[index] = piece.view(self.tensors[index].shape)

    def in_phases(self, phases: int) -> Tensor:
        """The node's gradient."""
        if phases not in self.by_phases:
            self.by_phases[phases] = split_phases(self.grad, phases)
        return self.by_phases[phases]

    def fold(
        self, candidates: Sequence[MixedCandidate], chains: Sequence[list[_SavedLink]]
    ) -> None:
        """The small part of the gradients of folded last products, all of a shape at once."""
        stacks: defaultdict[FoldedStack, list[tuple[FoldedBN, Tensor, Tensor]]] = defaultdict(list)
        need_matrix = False
        for candidate, chain in zip(candidates, chains, strict=True):
            if chain and isinstance(product := chain[-1].product, FoldedBN):
                grad = as_matrix(self.in_phases(candidate.chain[-1].phases))
                stacks[product.stack].append((product, grad, chain[-1].pixels))
                end = candidate.first + sum(len(link.convs) for link in candidate.chain)
                need_matrix |= any(self.needed[candidate.first : end])
        for stack, group in stacks.items():
            products, grads, reads = zip(*group, strict=True)
            stack.backward(products, grads, reads, self.grad_sum, need_matrix)

    def plain(self, candidate: MixedCandidate) -> None:
        feature, edge = candidate.feature, candidate.edge
        assert edge is not None
        if self.needed[edge]:
            flat, x = as_matrix(self.grad).reshape(-1), as_matrix(self.tensors[feature]).reshape(-1)
            self.mixing[edge][candidate.index] = torch.dot(flat, x)
        if self.needed[feature]:
            self._add_feature(feature, self.grad * self.tensors[edge][candidate.index])

    def chain(self, candidate: MixedCandidate, chain: list[_SavedLink]) -> None:
        links, feature, edge = candidate.chain, candidate.feature, candidate.edge
        if edge != self.edge:  # No other edge reads the same state.
            self.strips.clear()
            self.edge = edge
        grad: Tensor | None = self.in_phases(links[-1].phases)
        grad_sum: Tensor | None = self.grad_sum
        end = candidate.first + sum(len(link.convs) for link in links)
        for index in reversed(range(len(links))):
            link, saved, first = links[index], chain[index], index == 0
            parameters = slice(end - len(link.convs), end)
            end = parameters.start
            assert grad is not None
            by_input, by_matrix, along = saved.product.backward(
                as_matrix(grad),
                grad_sum,
                saved.pixels,
                any(self.needed[parameters]),
            )
            if index == len(links) - 1 and edge is not None and self.needed[edge]:
                self.along.append((edge, candidate.index, along))
            x = saved.x
            if x is None:
                x = _next_input(chain[index - 1], links[index - 1], link)
            need_x = not first or self.needed[feature]
            strips = self.strips[feature] if first else {}
            by_read = as_images(by_input, saved.read)
            grad, by_parameters = link.backward(by_read, by_matrix, x, need_x, strips)
            if by_parameters is not None:
                self.gradients[parameters] = [
                    self.room[each].copy_(gradient) if self.room else gradient
                    for each, gradient in enumerate(by_parameters, parameters.start)
                ]
            if not first:
                assert grad is not None
                grad = next_input_gradient(grad, x, links[index - 1].phases, link.phases)
                grad_sum = None
        if self.needed[feature]:
            assert grad is not None
            self._add_feature(feature, grad)

    def _add_feature(self, feature: int, gradient: Tensor) -> None:
        total = self.gradients[feature]
        self.gradients[feature] = gradient if total is None else total.add_(gradient)

    def result(self) -> list[Tensor | None]:
        if self.along:
            edges, indices, along = zip(*self.along, strict=True)
            totals = torch.stack(along).sum(1).unbind()
            for edge, index, total in zip(edges, indices, totals, strict=True):
                self.mixing[edge][index] = total
        for edge, gradients in self.mixing.items():
            weights = self.tensors[edge]
            if len(gradients) < len(weights):
                zero = weights.new_zeros(())
                gradients = {index: gradients.get(index, zero) for index in range(len(weights))}
            self.gradients[edge] = torch.stack([gradients[index] for index in range(len(weights))])
        for index, tensor in enumerate(self.tensors):
            if tensor.ndim == 1 and self.needed[index] and self.gradients[index] is None:
                self.gradients[index] = torch.zeros_like(tensor)  # an edge of nothing but 'zero'
        return self.gradients

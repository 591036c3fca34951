"""A node of the supernet: the weighted sum of all candidates on all its edges, in one step.

The candidates of a node are not modules that run one by one. Features of a source state (its ReLU,
its pools) are computed once for all edges that leave it; every candidate's last pointwise product,
BN and mixing weight are folded (see `prnas.nets.kernels.folding`) and added straight into the node.
What is kept for the backward pass is each link's input and depthwise output, or, with `recompute`,
only the features and small matrices.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from prnas.nets.kernels.depthwise import Strips
from prnas.nets.kernels.folding import ScaledProduct, update_running_statistics
from prnas.nets.kernels.layouts import as_images, as_matrix, matrix_view, merge_phases, split_phases
from prnas.nets.kernels.links import Link, next_input, next_input_gradient


@dataclass(frozen=True, slots=True)
class MixedCandidate:
    """A candidate of a node, by its places among the node's tensors.

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
    """A link's part of the forward pass; without `read`, all of it is computed again."""

    product: ScaledProduct
    x: Tensor | None  # or nothing, where it follows cheaply from the link before
    read: Tensor | None  # by the product


def mix(
    candidates: Sequence[MixedCandidate], tensors: Sequence[Tensor], training: bool, recompute: bool
) -> Tensor:
    """The node. `tensors`: features, then mixing weights of the edges, then parameters.

    Under autocast it computes in single precision all the same: batch statistics need it.
    """
    index = tensors[0].device.type
    if torch.is_autocast_enabled(index):
        with torch.autocast(index, enabled=False):
            single = [one.float() for one in tensors]
            return _apply(candidates, single, training, recompute)
    return _apply(candidates, tensors, training, recompute)


def _apply(
    candidates: Sequence[MixedCandidate], tensors: Sequence[Tensor], training: bool, recompute: bool
) -> Tensor:
    result: Any = _Mixture.apply(candidates, training, recompute, *tensors)
    return result


class _Mixture(Function):
    @staticmethod
    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any,
        candidates: Sequence[MixedCandidate],
        training: bool,
        recompute: bool,
        *tensors: Tensor,
    ) -> Tensor:
        ctx.candidates = candidates
        ctx.save_for_backward(*tensors)
        ctx.kept = []
        sums: dict[int, Tensor] = {}  # by phases
        products: list[ScaledProduct] = []
        biases: list[Tensor] = []
        for one in candidates:
            x = tensors[one.feature]
            weight = None if one.edge is None else tensors[one.edge][one.index]
            if not one.chain:
                assert weight is not None
                if 1 in sums:
                    sums[1].addcmul_(x, weight)
                else:
                    sums[1] = (x * weight).contiguous(memory_format=torch.channels_last)
                ctx.kept.append([])
                continue
            chain = _run_chain(one.chain, x, weight, training)
            products += [kept.product for kept in chain]
            last = chain[-1]
            assert last.read is not None
            _add_product(sums, one.chain[-1].phases, last.read, last.product)
            if last.product.bias is not None:
                biases.append(last.product.bias)
            if recompute:
                for kept in chain:
                    kept.x = kept.read = None
                    kept.product.forget()
            ctx.kept.append(chain)
        if training and products:
            update_running_statistics(products)
        return _total(sums, biases)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        tensors: tuple[Tensor, ...] = ctx.saved_tensors
        needed: tuple[bool, ...] = ctx.needs_input_grad[3:]
        if ctx.kept is None:
            raise RuntimeError("a supernet's graph can be differentiated only once")
        grad = grad.contiguous(memory_format=torch.channels_last)
        pass_ = _Backward(tensors, needed, grad)
        for one, chain in zip(ctx.candidates, ctx.kept, strict=True):
            if one.chain:
                pass_.chain(one, chain)
                chain.clear()  # the large tensors go now, not when the graph does
            else:
                pass_.plain(one)
        ctx.kept = None
        return None, None, None, *pass_.result()


def _run_chain(
    links: Sequence[Link], x: Tensor, weight: Tensor | None, training: bool
) -> list[_SavedLink]:
    chain: list[_SavedLink] = []
    for index, link in enumerate(links):
        last = index == len(links) - 1
        read = link.before_product(x)
        product = link.product(read, weight if last else None, training)
        rebuild = index > 0 and read is not x and chain[-1].product.keeps_output
        chain.append(_SavedLink(product, None if rebuild else x, read))
        if not last:
            x = next_input(product, read, link.phases, links[index + 1].phases)
    return chain


def _add_product(
    sums: dict[int, Tensor], phases: int, read: Tensor, product: ScaledProduct
) -> None:
    if phases in sums:
        product.add_to(matrix_view(sums[phases]), as_matrix(read))
    else:
        sums[phases] = as_images(product.add_to(None, as_matrix(read)), read)


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
        self.strips: dict[int, Strips] = {}
        self.gradients: list[Tensor | None] = [None] * len(tensors)
        self.mixing: dict[int, dict[int, Tensor]] = {}

    def plain(self, one: MixedCandidate) -> None:
        x = self.tensors[one.feature]
        assert one.edge is not None
        if self.needed[one.edge]:
            flat = as_matrix(self.grad).reshape(-1)
            self._add_mixing(one, torch.dot(flat, as_matrix(x).reshape(-1)))
        if self.needed[one.feature]:
            self._add_feature(one, self.grad * self.tensors[one.edge][one.index])

    def chain(self, one: MixedCandidate, chain: list[_SavedLink]) -> None:
        x = self.tensors[one.feature]
        if chain[0].read is None:
            _compute_again(one.chain, x, chain)
        phases = one.chain[-1].phases
        if phases not in self.by_phases:
            self.by_phases[phases] = split_phases(self.grad, phases)
        grad: Tensor | None = self.by_phases[phases]
        grad_sum: Tensor | None = self.grad_sum
        parameter = one.first + sum(len(link.parameters()) for link in one.chain)
        for index in reversed(range(len(one.chain))):
            link, kept = one.chain[index], chain[index]
            number = len(link.parameters())
            parameter -= number
            need_parameters = any(self.needed[parameter : parameter + number])
            assert grad is not None
            assert kept.read is not None
            by_input, by_matrix, by_scale = kept.product.backward(
                as_matrix(grad), grad_sum, as_matrix(kept.read), need_parameters
            )
            if index == len(one.chain) - 1 and one.edge is not None and self.needed[one.edge]:
                self._add_mixing(one, by_scale)
            first = index == 0
            x = kept.x if kept.x is not None else _input_of(one.chain, chain, index)
            grad, by_parameters = link.backward(
                as_images(by_input, kept.read),
                by_matrix,
                x,
                not first or self.needed[one.feature],
                self.strips.setdefault(one.feature, {}) if first else {},
            )
            if by_parameters is not None:
                self.gradients[parameter : parameter + len(by_parameters)] = by_parameters
            if not first:
                assert grad is not None
                phases_before = one.chain[index - 1].phases
                grad = next_input_gradient(grad, x, phases_before, link.phases)
                grad_sum = None
        if self.needed[one.feature]:
            assert grad is not None
            self._add_feature(one, grad)

    def _add_mixing(self, one: MixedCandidate, gradient: Tensor) -> None:
        assert one.edge is not None
        self.mixing.setdefault(one.edge, {})[one.index] = gradient

    def _add_feature(self, one: MixedCandidate, gradient: Tensor) -> None:
        have = self.gradients[one.feature]
        self.gradients[one.feature] = gradient if have is None else have.add_(gradient)

    def result(self) -> list[Tensor | None]:
        nothing = self.grad.new_zeros(())
        for edge, found in self.mixing.items():
            indices = range(len(self.tensors[edge]))
            self.gradients[edge] = torch.stack([found.get(index, nothing) for index in indices])
        for index, tensor in enumerate(self.tensors):
            if tensor.ndim == 1 and self.needed[index] and self.gradients[index] is None:
                self.gradients[index] = torch.zeros_like(tensor)  # an edge of nothing but 'zero'
        return self.gradients


def _input_of(links: Sequence[Link], chain: list[_SavedLink], index: int) -> Tensor:
    """What a later link of a chain read, made again."""
    before = chain[index - 1]
    assert before.read is not None
    return next_input(before.product, before.read, links[index - 1].phases, links[index].phases)


def _compute_again(links: Sequence[Link], x: Tensor, chain: list[_SavedLink]) -> None:
    for index, (link, kept) in enumerate(zip(links, chain, strict=True)):
        kept.x, kept.read = x, link.before_product(x)
        kept.product.remember(as_matrix(kept.read))
        if index < len(links) - 1:
            x = next_input(kept.product, kept.read, link.phases, links[index + 1].phases)

"""Second-order DARTS: architecture weights look one weight step ahead.

Liu, Simonyan, Yang: DARTS: Differentiable Architecture Search. ICLR 2019, equations 7 and 8.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prnas.nets.kernels.batch_norm import FrozenStatistics
from prnas.runs.attempt import Outcome, attempt, average
from prnas.searching.steps.base import Part, SearchStep

if TYPE_CHECKING:
    from prnas.searching.search import Search

EPSILON = 0.01  # divided by the length of the direction: how far the finite difference reaches


class SecondOrderStep(SearchStep):
    """The architecture's gradient is taken after one virtual weight step.

    The training images that it looks ahead with are those of the weight step that follows. Its
    second term, a product with a matrix of second derivatives, is a finite difference of first
    gradients; both sides of it draw the same random numbers. No pass of it changes running
    statistics.
    """

    name = "second-order"
    # In units of a weight step: ahead and at w', with the gradients of weights; and both sides of
    # the finite difference, without them.
    architecture_cost = 1.0 + 1.0 + 2 * 0.5

    def take(self) -> None:
        if not self.search.grace:
            parts = ["architecture", "weights"]  # both streams go back if memory runs out
            self.update("architecture", attempt(self.search, parts, self.unrolled_gradients))
        self.update("weights", attempt(self.search, ["weights"], lambda: self.gradients("weights")))

    def unrolled_gradients(self) -> Outcome:
        search, state = self.search, self.search.state
        validation = search.next_images("architecture")
        with read_again(search, "weights"):
            training = search.next_images("weights")
        outcomes: list[Outcome] = []

        def validation_loss() -> Tensor:
            loss, outcome = self._loss(*validation)
            outcomes.append(outcome)
            return self.objective(loss)

        dropout = state.generators["dropout"]
        problem = Bilevel(
            weights=state.weight_parameters,
            architecture=state.architecture_parameters,
            training_loss=lambda: self._loss(*training)[0],
            validation_loss=validation_loss,
            training_only=state.supernet.training_only,
            average=lambda tensors: average(search, tensors),
            noise=dropout.get_state,
            set_noise=dropout.set_state,
        )
        rule, momenta = search.config.weights, momenta_of(state.weights_optimizer)
        with state.timed("architecture"), FrozenStatistics([state.supernet]):
            gradients = unrolled(problem, search.lr, rule.momentum, rule.weight_decay, momenta)
        for weight, gradient in zip(state.architecture_parameters, gradients, strict=True):
            weight.grad = gradient
        return outcomes[0]

    def _loss(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Outcome]:
        with self.search.processes.autocast():
            logits = self.logits(images)
            loss = F.cross_entropy(logits, labels)
        return loss, Outcome.of(loss, logits, labels)


@dataclass(frozen=True)
class Bilevel:
    """Two losses of two kinds of parameters, and what is needed to differentiate them."""

    weights: Sequence[nn.Parameter]
    architecture: Sequence[nn.Parameter]
    training_loss: Callable[[], Tensor]
    validation_loss: Callable[[], Tensor]
    training_only: Callable[..., AbstractContextManager[object]]
    average: Callable[[Sequence[Tensor]], None]  # over all processes
    noise: Callable[[], Tensor]  # the state of what a loss draws from
    set_noise: Callable[[Tensor], object]


def unrolled(
    problem: Bilevel,
    rate: float,
    momentum: float = 0.0,
    decay: float = 0.0,
    momenta: Callable[[nn.Parameter], Tensor | None] = lambda weight: None,
    epsilon: float = EPSILON,
) -> list[Tensor]:
    """The gradient of the validation loss by the architecture, after a virtual weight step.

    That step is SGD's: by `rate`, with the `momentum` that weights have already, and with `decay`;
    gradients are not clipped. Weights are afterwards as they were, exactly.
    """
    weights, architecture = problem.weights, problem.architecture

    def gradients(loss: Callable[[], Tensor], *parts: Part) -> list[Tensor]:
        with problem.training_only(*parts):
            wanted = [*(architecture if "architecture" in parts else ())]
            wanted += weights if "weights" in parts else ()
            return gradients_of(loss(), wanted)

    ahead = gradients(problem.training_loss, "weights")
    problem.average(ahead)  # all processes look ahead to the same weights
    with torch.no_grad():
        for weight, step in zip(weights, ahead, strict=True):
            if momentum and (buffer := momenta(weight)) is not None:
                step.add_(buffer, alpha=momentum)
            step.add_(weight, alpha=decay)
    with moved(weights, ahead, -rate):
        both = gradients(problem.validation_loss, "architecture", "weights")
    direct, direction = both[: len(architecture)], both[len(architecture) :]
    problem.average(direction)
    # A length of 0, where nothing depends on the weights, has no second term either.
    length = torch.linalg.vector_norm(torch.cat([along.flatten() for along in direction]))
    reach = epsilon / length.clamp_min(torch.finfo(length.dtype).tiny)
    noise = problem.noise()
    sides: list[list[Tensor]] = []
    for sign in (1.0, -1.0):
        problem.set_noise(noise)
        with moved(weights, direction, sign * reach):
            sides.append(gradients(problem.training_loss, "architecture"))
    return [
        first - rate * (plus - minus) / (2 * reach)
        for first, plus, minus in zip(direct, *sides, strict=True)
    ]


def gradients_of(loss: Tensor, parameters: Sequence[nn.Parameter]) -> list[Tensor]:
    """The gradient of every parameter; zeros for one that the loss does not depend on."""
    if not loss.requires_grad:  # A sampled cell that zeros cut off depends on no architecture.
        return [torch.zeros_like(weight) for weight in parameters]
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    pairs = zip(parameters, gradients, strict=True)
    return [torch.zeros_like(weight) if grad is None else grad.clone() for weight, grad in pairs]


def momenta_of(optimizer: torch.optim.Optimizer) -> Callable[[nn.Parameter], Tensor | None]:
    """The momentum of a weight, if it has one yet."""
    return lambda weight: optimizer.state.get(weight, {}).get("momentum_buffer")


@contextmanager
def read_again(search: "Search", part: str) -> Iterator[None]:
    """A context whose images will be read again: the stream and its augmentation go back."""
    stream, generator = search.streams[part], search.state.generators[f"augment {part}"]
    position, random = stream.state(), generator.get_state()
    yield
    stream.load_state(position)
    generator.set_state(random)


@contextmanager
def moved(
    weights: Sequence[nn.Parameter], direction: Sequence[Tensor], length: float | Tensor
) -> Iterator[None]:
    """Within it, weights are moved along a direction; afterwards they are as they were, exactly."""
    before = [weight.detach().clone() for weight in weights]
    try:
        with torch.no_grad():
            for weight, way in zip(weights, direction, strict=True):
                weight.add_(way * length)
        yield
    finally:
        with torch.no_grad():
            for weight, old in zip(weights, before, strict=True):
                weight.copy_(old)

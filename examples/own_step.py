"""A step of one's own: second-order DARTS, where architecture weights look one weight step ahead.

The gradient of the architecture weights is taken at the weights w' = w - lr * dL_train/dw. Its
second term, a product with a matrix of second derivatives, is approximated by finite differences
(Liu et al., "DARTS: Differentiable Architecture Search", 2019, equations 7 and 8). The same
training images serve to look ahead and for the weight step that follows.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import prnas
from prnas.runs.attempt import Outcome, attempt, average
from prnas.searching.search import Search
from prnas.searching.steps import SearchStep, register

TINY = Path(__file__).with_name("tiny.yaml")


class SecondOrderStep(SearchStep):
    """An unrolled architecture step, which reads both halves; then an ordinary weight step."""

    name = "second-order"
    # In units of a weight step: ahead and at w', with the gradients of weights; and both sides of
    # the finite difference, without them.
    architecture_cost = 1.0 + 1.0 + 2 * 0.5

    def take(self) -> None:
        if not self.search.grace:
            parts = ["architecture", "weights"]  # both streams go back if memory runs out
            self.update("architecture", attempt(self.search, parts, self.unrolled_gradients))
        self.update("weights", attempt(self.search, ["weights"], self.weight_gradients))

    def weight_gradients(self) -> Outcome:
        return self.gradients("weights")

    def unrolled_gradients(self) -> Outcome:
        search, state = self.search, self.search.state
        weights, alphas = state.weight_parameters, state.architecture_parameters
        validation, validation_labels = search.next_images("architecture")
        with read_again(search, "weights"):
            training, training_labels = search.next_images("weights")
        with state.timed("architecture"):
            loss, _ = self.forward(training, training_labels)
            ahead = gradients_of(loss, weights)
            average(search, ahead)  # all processes look ahead to the same weights
            with moved(weights, ahead, -search.lr):
                loss, logits = self.forward(validation, validation_labels)
                outcome = Outcome.of(loss, logits, validation_labels)
                gradients = gradients_of(loss, [*alphas, *weights])
            direct, direction = gradients[: len(alphas)], gradients[len(alphas) :]
            average(search, direction)
            epsilon = 0.01 / torch.cat([along.flatten() for along in direction]).norm().item()
            sides: list[list[Tensor]] = []
            random = state.generators["dropout"].get_state()
            for sign in (1.0, -1.0):
                state.generators["dropout"].set_state(random)  # both sides drop the same
                with moved(weights, direction, sign * epsilon):
                    loss, _ = self.forward(training, training_labels)
                    sides.append(gradients_of(loss, alphas))
            for alpha, first, plus, minus in zip(alphas, direct, *sides, strict=True):
                alpha.grad = first - search.lr * (plus - minus) / (2 * epsilon)
        return outcome

    def forward(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        state = self.search.state
        with self.search.processes.autocast():
            logits = state.supernet(images, state.generators["dropout"])
            return F.cross_entropy(logits, labels), logits


def gradients_of(loss: Tensor, parameters: Sequence[nn.Parameter]) -> list[Tensor]:
    """The gradient of every parameter; zeros for one that the loss does not depend on."""
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    pairs = zip(parameters, gradients, strict=True)
    return [torch.zeros_like(weight) if grad is None else grad.clone() for weight, grad in pairs]


@contextmanager
def read_again(search: Search, part: str) -> Iterator[None]:
    """What is read within it will be read again: the stream and its augmentation go back."""
    stream, generator = search.streams[part], search.state.generators[f"augment {part}"]
    position, random = stream.state(), generator.get_state()
    yield
    stream.load_state(position)
    generator.set_state(random)


@contextmanager
def moved(
    weights: Sequence[nn.Parameter], direction: Sequence[Tensor], length: float
) -> Iterator[None]:
    """Within it, weights are moved along a direction; afterwards they are as they were, exactly."""
    before = [weight.detach().clone() for weight in weights]
    try:
        with torch.no_grad():
            for weight, way in zip(weights, direction, strict=True):
                weight.add_(way, alpha=length)
        yield
    finally:
        with torch.no_grad():
            for weight, old in zip(weights, before, strict=True):
                weight.copy_(old)


register(SecondOrderStep)

if __name__ == "__main__":
    result = prnas.search(TINY, overrides=["architecture.step=second-order"])
    print(result.genotype)

"""Second-order DARTS: its gradient against exact ones, its images, its running statistics."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

import prnas
from prnas.config.search import SearchConfig
from prnas.nets import plain_supernet
from prnas.runs.named import config_of
from prnas.searching.search import Search
from prnas.searching.steps.second_order import Bilevel, SecondOrderStep, unrolled
from prnas.searching.time_left import work_of_epochs
from prnas.space.operations import Conv, Pool, Skip
from prnas.space.pools import Pools
from tests.support.settings import small_config

TINY = Path(__file__).parents[3] / "examples" / "tiny.yaml"


def problem(
    weights: Sequence[nn.Parameter],
    architecture: Sequence[nn.Parameter],
    training_loss: Callable[[], Tensor],
    validation_loss: Callable[[], Tensor],
) -> Bilevel:
    generator = torch.Generator()
    return Bilevel(
        weights=weights,
        architecture=architecture,
        training_loss=training_loss,
        validation_loss=validation_loss,
        training_only=lambda *parts: nullcontext(),
        average=lambda tensors: None,
        noise=generator.get_state,
        set_noise=generator.set_state,
    )


def number(value: float) -> nn.Parameter:
    return nn.Parameter(torch.tensor(value, dtype=torch.float64))


def toy(w: float, a: float, rate: float, epsilon: float = 0.01) -> float:
    """The paper's: L_train = w^2 - 2aw + a^2, L_val = aw - 2a + 1."""
    weight, alpha = number(w), number(a)
    two_levels = problem(
        [weight],
        [alpha],
        lambda: weight**2 - 2 * alpha * weight + alpha**2,
        lambda: alpha * weight - 2 * alpha + 1,
    )
    (gradient,) = unrolled(two_levels, rate, epsilon=epsilon)
    assert weight.item() == w
    return gradient.item()


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5])
def test_the_papers_toy_is_exact_for_any_epsilon(rate: float, epsilon: float) -> None:
    for w, a in ((0.3, 1.7), (-2.0, 0.4)):
        exact = (w - 2 * rate * (w - a)) - 2 + 2 * rate * a
        assert toy(w, a, rate, epsilon) == pytest.approx(exact, abs=1e-11)


@pytest.mark.parametrize(("rate", "where"), [(0.0, 2.0), (0.5, 1.0), (0.25, 4 / 3)])
def test_the_papers_toy_rests_where_it_should(rate: float, where: float) -> None:
    assert toy(where, where, rate) == pytest.approx(0.0, abs=1e-12)


def test_nothing_depends_on_the_weights() -> None:
    weight, alpha = number(1.0), number(3.0)
    two_levels = problem([weight], [alpha], lambda: weight * alpha, lambda: alpha**2)
    assert [one.item() for one in unrolled(two_levels, 0.5)] == [6.0]


@pytest.fixture
def textbook(monkeypatch: pytest.MonkeyPatch) -> plain_supernet.Supernet:
    """With a smooth function instead of the ReLU, whose kinks have no second derivative."""
    monkeypatch.setattr(F, "relu", lambda x, inplace=False: F.softplus(x))  # pyright: ignore
    torch.manual_seed(0)
    pools = Pools.initial(2, (Skip(), Pool("avg", 3), Conv(3)))
    supernet = plain_supernet.Supernet(pools, 2, 3, 3).double()
    for alpha in supernet.architecture_parameters():
        nn.init.normal_(alpha)
    return supernet.train()


class Exact:
    """The textbook's supernet on two batches, and autograd's gradient through a weight step."""

    def __init__(self, supernet: plain_supernet.Supernet) -> None:
        generator = torch.Generator().manual_seed(1)
        self.supernet = supernet
        self.names = {id(weight): name for name, weight in supernet.named_parameters()}
        self.batches = [
            (torch.randn(6, 3, 8, 8, dtype=torch.float64, generator=generator), torch.arange(6) % 3)
            for _ in range(2)
        ]
        self.momenta = {
            id(weight): torch.randn(weight.shape, dtype=torch.float64, generator=generator)
            for weight in supernet.weight_parameters()
        }

    def problem(self) -> Bilevel:
        def loss(batch: int) -> Callable[[], Tensor]:
            images, labels = self.batches[batch]
            return lambda: F.cross_entropy(self.supernet(images), labels)

        supernet = self.supernet
        parameters = supernet.weight_parameters(), supernet.architecture_parameters()
        return problem(*parameters, loss(0), loss(1))

    def gradient(self, rate: float, momentum: float, decay: float) -> list[Tensor]:
        weights = self.supernet.weight_parameters()
        (images, labels), (other_images, other_labels) = self.batches
        loss = F.cross_entropy(self.supernet(images), labels)
        steps = torch.autograd.grad(loss, weights, create_graph=True)
        ahead = {
            self.names[id(weight)]: weight
            - rate * (momentum * self.momenta[id(weight)] + step + decay * weight)
            for weight, step in zip(weights, steps, strict=True)
        }
        loss = F.cross_entropy(functional_call(self.supernet, ahead, other_images), other_labels)
        return list(torch.autograd.grad(loss, self.supernet.architecture_parameters()))


def distance(one: Sequence[Tensor], other: Sequence[Tensor]) -> float:
    pairs = zip(one, other, strict=True)
    return sum(((a - b) ** 2).sum().item() for a, b in pairs) ** 0.5


def test_the_difference_converges_to_autograds_gradient_as_epsilon_squared(
    textbook: plain_supernet.Supernet,
) -> None:
    exact = Exact(textbook)
    rule = (0.1, 0.9, 3e-2)
    expected = exact.gradient(*rule)

    def error(epsilon: float) -> float:
        momenta = lambda weight: exact.momenta[id(weight)]  # noqa: E731
        found = unrolled(exact.problem(), *rule, momenta, epsilon)
        return distance(found, expected) / distance(expected, [0 * one for one in expected])

    errors = [error(epsilon) for epsilon in (0.04, 0.02, 0.01)]
    assert errors[2] < 1e-3
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.05)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.05)
    # The second term matters: without it the gradient is another.
    without = unrolled(exact.problem(), 0.0)
    assert distance(without, expected) > 100 * errors[2] * distance(
        expected, [0 * one for one in expected]
    )


def test_without_looking_ahead_it_is_first_order(textbook: plain_supernet.Supernet) -> None:
    exact = Exact(textbook)
    images, labels = exact.batches[1]
    loss = F.cross_entropy(textbook(images), labels)
    first = torch.autograd.grad(loss, textbook.architecture_parameters())
    for one, other in zip(unrolled(exact.problem(), 0.0), first, strict=True):
        assert torch.equal(one, other)


def test_both_sides_draw_the_same_noise() -> None:
    """With other noise on each side the difference would be of the noise."""
    generator = torch.Generator().manual_seed(3)
    weight, alpha = number(0.5), number(0.25)
    drawn: list[float] = []

    def noisy() -> Tensor:
        drawn.append(torch.rand((), generator=generator).item())
        return weight * alpha * 1e-3 + 1e6 * drawn[-1] * alpha

    two_levels = Bilevel(
        [weight],
        [alpha],
        noisy,
        lambda: weight * alpha,
        lambda *parts: nullcontext(),
        lambda tensors: None,
        generator.get_state,
        generator.set_state,
    )
    (gradient,) = unrolled(two_levels, 0.1)
    ahead = 0.5 - 0.1 * 0.25 * 1e-3
    assert drawn[1] == drawn[2] != drawn[0]
    assert gradient.item() == pytest.approx(ahead - 0.1 * 0.25 * 1e-3, rel=1e-4)


class SeenError(Exception):
    """All that a test wants of a search is there."""


def gradients_at_start(step: str, monkeypatch: pytest.MonkeyPatch, *more: str) -> list[Any]:
    """The gradients of the first architecture step, with which the search ends."""
    seen: list[list[Tensor]] = []
    real = Search.optimize

    def watched(self: Search, part: str, parameters: Any, *rest: Any) -> None:
        if part == "architecture":
            seen.append([weight.grad.clone() for weight in parameters])
            raise SeenError
        real(self, part, parameters, *rest)

    monkeypatch.setattr(Search, "optimize", watched)
    cycles = "schedule.cycles.0.grace_epochs=0"
    precision = "compute.precision=64-true"
    with pytest.raises(SeenError):
        prnas.search(TINY, overrides=[f"architecture.step={step}", cycles, precision, *more])
    monkeypatch.undo()
    return seen[0]


def test_in_a_search_it_is_first_order_without_looking_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a learning rate of almost nothing both gradients agree; with a real one they do not."""
    still = ("weights.lr=1e-12", "weights.lr_min=1e-12")
    first = gradients_at_start("first-order", monkeypatch, *still)
    second = gradients_at_start("second-order", monkeypatch, *still)
    for one, other in zip(first, second, strict=True):
        assert torch.allclose(one, other, rtol=1e-6, atol=1e-9)
    ahead = gradients_at_start("second-order", monkeypatch, "weights.lr=0.1")
    assert not all(
        torch.allclose(one, other, rtol=1e-3) for one, other in zip(first, ahead, strict=True)
    )


@pytest.mark.parametrize("execution", ["fused", "plain"])
def test_in_a_search_a_rate_of_nothing_is_first_order_to_the_bit(
    execution: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rate so small that no weight is another after the virtual step."""
    still = ("weights.lr=1e-300", "weights.lr_min=1e-300", f"compute.supernet={execution}")
    first = gradients_at_start("first-order", monkeypatch, *still)
    second = gradients_at_start("second-order", monkeypatch, *still)
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


def test_it_looks_ahead_with_the_images_of_its_weight_step(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, Tensor]] = []
    real = Search.next_images

    def watched(self: Search, part: str) -> tuple[Tensor, Tensor]:
        images, labels = real(self, part)
        seen.append((part, images.clone()))
        if len(seen) == 6:
            raise SeenError
        return images, labels

    monkeypatch.setattr(Search, "next_images", watched)
    overrides = ["architecture.step=second-order", "schedule.cycles.0.grace_epochs=0"]
    with pytest.raises(SeenError):
        prnas.search(TINY, overrides=[*overrides, "data.crop_padding=2"])
    assert [part for part, _ in seen] == ["architecture", "weights", "weights"] * 2
    images = [images for _, images in seen]
    assert torch.equal(images[1], images[2])
    assert torch.equal(images[4], images[5])
    assert not torch.equal(images[1], images[4])


def test_only_gradients_of_the_architecture_are_left_behind(
    images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights, momenta and running statistics are those from before, to the bit."""
    compared: list[int] = []
    real = SecondOrderStep.unrolled_gradients

    @contextmanager
    def unchanged(search: Search) -> Iterator[None]:
        before = {name: value.clone() for name, value in search.state.tensors().items()}
        yield
        after = search.state.tensors()
        assert all(torch.equal(value, after[name]) for name, value in before.items())
        assert all(weight.grad is None for weight in search.state.weight_parameters)
        assert any(weight.grad.any() for weight in search.state.architecture_parameters)  # pyright: ignore
        compared.append(len(before))

    def watched(self: SecondOrderStep) -> Any:
        with unchanged(self.search):
            return real(self)

    monkeypatch.setattr(SecondOrderStep, "unrolled_gradients", watched)
    cycle = {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1, "skip_dropout": 0.3}
    prnas.search(
        small_config(images, schedule={"cycles": [cycle]}, architecture={"step": "second-order"})
    )
    assert len(compared) >= 3


def test_the_time_left_follows_the_cost_of_a_step() -> None:
    grace, both = "schedule.cycles.0.grace_epochs=1", "schedule.cycles.0.epochs=2"
    works = {
        step: work_of_epochs(
            config_of(TINY, [f"architecture.step={step}", grace, both], SearchConfig)
        )[0]
        for step in ("first-order", "second-order")
    }
    first, second = works["first-order"], works["second-order"]
    assert first[0] == second[0]  # a grace epoch
    validation = 0.15
    assert first[1] / first[0] == pytest.approx((1.5 + validation) / (1 + validation))
    assert second[1] / second[0] == pytest.approx((4 + validation) / (1 + validation))

"""The faster batch normalisation is PyTorch's: outputs, gradients, running statistics."""

import copy
import pickle
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from prnas.nets.kernels import batch_norm as normalisation
from prnas.nets.kernels.batch_norm import BatchNorm, fold_of, statistics, sums


@pytest.fixture(autouse=True)
def _however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalisation, "_LARGE", 2)


def images(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    made = torch.randn(shape, generator=generator, dtype=torch.float64) * 3 + 2
    return made.contiguous(memory_format=torch.channels_last)


def pair(channels: int, affine: bool) -> tuple[BatchNorm, nn.BatchNorm2d]:
    """Ours and PyTorch's, with the same weights."""
    ours, theirs = BatchNorm(channels, affine=affine), nn.BatchNorm2d(channels, affine=affine)
    if affine:
        nn.init.normal_(ours.weight)
        nn.init.normal_(ours.bias)
    theirs.load_state_dict(ours.state_dict())
    return ours.double(), theirs.double()


@settings(deadline=None, max_examples=60)
@given(
    batch=st.integers(1, 5),
    channels=st.integers(1, 80),
    height=st.integers(1, 6),
    width=st.integers(1, 6),
    affine=st.booleans(),
)
def test_it_is_pytorchs(batch: int, channels: int, height: int, width: int, affine: bool) -> None:
    if batch * height * width == 1:
        batch = 2
    ours, theirs = pair(channels, affine)
    found: list[list[Tensor]] = []
    for norm in (ours, theirs):
        x = images(batch, channels, height, width).requires_grad_()
        norm(images(*x.shape, seed=2))  # so that running statistics are not the batch's own
        out = norm(x)
        grads = torch.autograd.grad(
            out, [x, *norm.parameters()], images(*x.shape, seed=1), allow_unused=False
        )
        found.append([out, *grads])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("affine", [True, False])
def test_gradients_have_gradients(affine: bool) -> None:
    norm, _ = pair(3, affine)
    x = images(2, 3, 2, 3).requires_grad_()
    assert torch.autograd.gradcheck(norm, x)
    assert torch.autograd.gradgradcheck(norm, x)
    if affine:
        norm.requires_grad_(False)
        assert torch.autograd.gradgradcheck(norm, x)


def test_gradients_of_weights_have_gradients() -> None:
    norm, _ = pair(3, True)

    def normalised(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return torch.func.functional_call(norm, {"weight": weight, "bias": bias}, (x,))

    inputs = images(2, 3, 2, 3).requires_grad_(), norm.weight, norm.bias
    assert torch.autograd.gradgradcheck(normalised, inputs)


@given(number=st.integers(2, 40), channels=st.integers(1, 40))
@settings(deadline=None, max_examples=40)
def test_statistics_and_sums(number: int, channels: int) -> None:
    pixels, grad = images(number, channels, 1, 1)[..., 0, 0], images(number, channels, 1, 1, seed=1)
    grad = grad[..., 0, 0]
    fold = fold_of(pixels)
    assert number % fold == 0
    mean, variance = statistics(pixels, fold)
    expected, expected_mean = torch.var_mean(pixels, 0, correction=0)
    torch.testing.assert_close((mean, variance), (expected_mean, expected))
    along, alone = sums(grad, pixels, mean, variance.rsqrt(), fold)
    normalised = (pixels - expected_mean) / expected.sqrt()
    torch.testing.assert_close((along, alone), ((grad * normalised).sum(0), grad.sum(0)))


Change = Callable[[BatchNorm, Tensor], tuple[BatchNorm, Tensor]]


@pytest.mark.parametrize(
    ("change", "fast"),
    [
        (lambda norm, x: (norm, x), True),
        (lambda norm, x: (norm.eval(), x), False),
        (lambda norm, x: (norm, x.contiguous()), False),
        (lambda norm, x: (norm.float(), x.float()), True),
        (lambda norm, x: (norm.bfloat16(), x.bfloat16()), False),
        (lambda norm, x: (norm.float(), x.bfloat16()), False),
        (lambda norm, x: (BatchNorm(65).double(), images(2, 65, 4, 4)), False),
        (lambda norm, x: (BatchNorm(6, momentum=None).double(), x), False),
        (lambda norm, x: (BatchNorm(6, track_running_stats=False).double(), x), False),
    ],
)
def test_only_where_it_pays(change: Change, fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    norm, x = change(pair(6, True)[0], images(2, 6, 4, 4))
    calls: list[int] = []

    def counting(pixels: Tensor, fold: int) -> tuple[Tensor, Tensor]:
        calls.append(fold)
        return statistics(pixels, fold)

    monkeypatch.setattr(normalisation, "statistics", counting)
    norm(x)
    assert bool(calls) == fast


def test_not_for_small_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalisation, "_LARGE", 1_000)
    monkeypatch.setattr(normalisation, "statistics", None)
    BatchNorm(6).double()(images(2, 6, 4, 4))
    with pytest.raises(TypeError, match="not callable"):
        BatchNorm(6).double()(images(11, 6, 4, 4))


def test_another_number_of_channels_is_refused_as_ever() -> None:
    with pytest.raises(RuntimeError, match="running_mean should contain"):
        BatchNorm(8, affine=False).double()(images(4, 1, 5, 5))


def test_a_single_pixel_is_refused_as_ever() -> None:
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        BatchNorm(6)(torch.randn(1, 6, 1, 1).contiguous(memory_format=torch.channels_last))


def test_it_copies_and_pickles() -> None:
    norm, _ = pair(4, True)
    x = images(3, 4, 2, 2)
    for twin in (copy.deepcopy(norm), pickle.loads(pickle.dumps(norm))):  # noqa: S301
        assert torch.equal(twin(x), copy.deepcopy(norm)(x))

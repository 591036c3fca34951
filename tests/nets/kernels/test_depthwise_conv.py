"""The faster depthwise convolution is the plain one, gradients included."""

import copy
import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from prnas.nets.kernels import depthwise_conv as training_conv
from prnas.nets.kernels.depthwise_conv import DepthwiseConv


def gradients(out: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(1)
    grad = torch.randn(out.shape, generator=generator, dtype=out.dtype)
    return torch.autograd.grad(out, inputs, grad)


@settings(deadline=None, max_examples=60)
@given(
    kernel=st.sampled_from([1, 3, 5, 7, 9, 11]),
    stride=st.sampled_from([1, 2]),
    dilation=st.sampled_from([1, 2, 3]),
    height=st.integers(1, 14),
    width=st.integers(1, 14),
    batch=st.integers(1, 3),
)
def test_it_is_the_plain_convolution(
    kernel: int, stride: int, dilation: int, height: int, width: int, batch: int
) -> None:
    generator = torch.Generator().manual_seed(0)
    conv = DepthwiseConv(3, kernel, stride, dilation).double()
    x = torch.randn(batch, 3, height, width, generator=generator, dtype=torch.float64)
    x = x.contiguous(memory_format=torch.channels_last).requires_grad_()
    out = conv(x)
    padding = dilation * (kernel - 1) // 2
    expected = F.conv2d(x, conv.weight, None, stride, padding, dilation, groups=3)
    assert torch.allclose(out, expected, rtol=1e-12, atol=1e-12)
    for ours, theirs in zip(
        gradients(out, x, conv.weight), gradients(expected, x, conv.weight), strict=True
    ):
        assert torch.allclose(ours, theirs, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize(("kernel", "stride", "dilation"), [(3, 1, 2), (3, 2, 2), (5, 2, 1)])
def test_gradients_have_gradients(kernel: int, stride: int, dilation: int) -> None:
    conv = DepthwiseConv(2, kernel, stride, dilation).double()

    def convolved(x: Tensor, weight: Tensor) -> Tensor:
        return torch.func.functional_call(conv, {"weight": weight}, (x,))

    x = torch.randn(2, 2, 6, 6, dtype=torch.float64).contiguous(memory_format=torch.channels_last)
    assert torch.autograd.gradgradcheck(convolved, (x.requires_grad_(), conv.weight))


@pytest.mark.parametrize(
    ("kernel", "dilation", "training", "channels_last", "fast"),
    [
        (5, 1, True, True, True),
        (3, 2, True, True, True),
        (3, 1, True, True, False),
        (3, 2, False, True, False),
        (3, 2, True, False, False),
    ],
)
def test_only_where_it_pays(
    kernel: int,
    dilation: int,
    training: bool,
    channels_last: bool,
    fast: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used: list[bool] = []
    real = training_conv.depthwise

    def noted(*arguments: object) -> Tensor:
        used.append(True)
        return real(*arguments)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(training_conv, "depthwise", noted)
    conv = DepthwiseConv(4, kernel, 1, dilation).train(training)
    x = torch.randn(2, 4, 8, 8)
    if channels_last:
        x = x.contiguous(memory_format=torch.channels_last)
    conv(x)
    assert bool(used) == fast


def test_a_frozen_weight_or_input_gets_no_gradient() -> None:
    conv = DepthwiseConv(4, 5, 1, 2)
    x = torch.randn(2, 4, 8, 8).contiguous(memory_format=torch.channels_last)
    conv(x).sum().backward()
    assert conv.weight.grad is not None
    conv.weight.requires_grad_(False)
    conv(x.requires_grad_()).sum().backward()
    assert x.grad is not None


def test_it_can_be_copied_and_pickled() -> None:
    conv = DepthwiseConv(4, 5, 1, 2)
    x = torch.randn(2, 4, 8, 8).contiguous(memory_format=torch.channels_last)
    for other in (copy.deepcopy(conv), pickle.loads(pickle.dumps(conv))):  # noqa: S301
        assert torch.equal(other(x), conv(x))

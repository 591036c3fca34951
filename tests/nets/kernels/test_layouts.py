"""Layouts of images are what their slices say, gradients included."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from prnas.nets.kernels.layouts import diagonal_phases

LAYOUTS = [torch.contiguous_format, torch.channels_last]


@settings(deadline=None, max_examples=15)
@given(
    height=st.integers(1, 7),
    width=st.integers(1, 7),
    channels=st.integers(1, 3),
    layout=st.sampled_from(LAYOUTS),
)
def test_diagonal_phases(
    height: int, width: int, channels: int, layout: torch.memory_format
) -> None:
    images = torch.randn(2, channels, height, width, dtype=torch.float64)
    images = images.contiguous(memory_format=layout).requires_grad_()
    first, second = diagonal_phases(images)
    assert torch.equal(first, images[:, :, ::2, ::2])
    assert torch.equal(second, F.pad(images, (-1, 1, -1, 1))[:, :, ::2, ::2])
    assert torch.autograd.gradcheck(diagonal_phases, images)
    assert torch.autograd.gradgradcheck(diagonal_phases, images)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_diagonal_phases_keep_the_layout(layout: torch.memory_format) -> None:
    images = torch.randn(2, 4, 6, 6).contiguous(memory_format=layout).requires_grad_()
    first, second = diagonal_phases(images)
    (grad,) = torch.autograd.grad(first.sum() + second.sum(), images)
    assert all(one.is_contiguous(memory_format=layout) for one in (first, second, grad))

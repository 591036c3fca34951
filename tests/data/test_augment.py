"""Augmentation, against one image at a time with loops."""

from typing import Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from prnas.data.augment import Augmentation, plain
from prnas.data.dataset import Normalization
from tests.support.generators import generator
from tests.support.made_data import images

NORMAL = Normalization((0.5, 0.3, 0.2), (0.25, 0.2, 0.5))


def slow(image: Tensor, draw: list[float], how: Augmentation) -> Tensor:
    """One image: normalise, pad with zeros, crop, flip, cut a square out.

    If the padding is black, it comes before the normalisation.
    """
    if how.padding_color == "black":
        image = F.pad(image, [how.crop_padding] * 4)
    channels, height, width = image.shape
    mean, std = (torch.tensor(v)[:, None, None] for v in (NORMAL.mean, NORMAL.std))
    pixels = (image.float() / 255 - mean) / std
    pad = how.crop_padding
    if how.padding_color == "black":
        padded, height, width = pixels, height - 2 * pad, width - 2 * pad
    else:
        padded = torch.zeros(channels, height + 2 * pad, width + 2 * pad)
        padded[:, pad : pad + height, pad : pad + width] = pixels
    down, right = int(draw[1] * (2 * pad + 1)), int(draw[2] * (2 * pad + 1))
    result = padded[:, down : down + height, right : right + width].clone()
    if how.flip and draw[0] < 0.5:
        result = result.flip(2)
    if how.cutout:
        top = int(draw[3] * height) - how.cutout // 2
        left = int(draw[4] * width) - how.cutout // 2
        for y in range(max(0, top), min(height, top + how.cutout)):
            for x in range(max(0, left), min(width, left + how.cutout)):
                result[:, y, x] = 0
    return result


@given(
    number=st.integers(1, 6),
    height=st.integers(1, 7),
    width=st.integers(1, 7),
    flip=st.booleans(),
    padding=st.integers(0, 9),
    cutout=st.integers(0, 9),
    color=st.sampled_from(["mean", "black"]),
    seed=st.integers(0, 100),
)
def test_a_batch_is_what_loops_make_of_each_image(
    number: int,
    height: int,
    width: int,
    flip: bool,
    padding: int,
    cutout: int,
    color: Literal["mean", "black"],
    seed: int,
) -> None:
    pixels = images(number, (3, height, width)).pixels
    how = Augmentation(flip, padding, cutout, NORMAL, color)
    made = how(pixels, generator(seed))
    draws = torch.rand(number, 5, generator=generator(seed), dtype=torch.float64).tolist()
    wanted = [slow(image, draw, how) for image, draw in zip(pixels, draws, strict=True)]
    assert torch.allclose(made, torch.stack(wanted), atol=1e-6)
    assert made.dtype == torch.float32
    assert made.is_contiguous(memory_format=torch.channels_last)


@given(number=st.integers(1, 5), world=st.integers(1, 4), seed=st.integers(0, 100))
def test_processes_see_what_one_would(number: int, world: int, seed: int) -> None:
    pixels = images(number * world).pixels
    how = Augmentation(True, 2, 2, NORMAL)
    alone = generator(seed)
    whole = how(pixels, alone)
    for rank in range(world):
        own = generator(seed)
        part = pixels[rank * number : (rank + 1) * number]
        made = how(part, own, total=number * world, offset=rank * number)
        assert torch.equal(made, whole[rank * number : (rank + 1) * number])
        assert torch.equal(own.get_state(), alone.get_state())


def test_the_generator_moves_alike_whatever_is_switched_on() -> None:
    pixels = images(4).pixels
    states: list[Tensor] = []
    for how in (Augmentation(True, 4, 2, NORMAL), Augmentation(False, 0, 0, NORMAL)):
        own = generator()
        how(pixels, own)
        states.append(own.get_state())
    assert torch.equal(*states)


def test_nothing_switched_on_is_plain_and_plain_is_exact() -> None:
    pixels = images(4).pixels
    made = plain(pixels, NORMAL)
    assert torch.equal(Augmentation(False, 0, 0, NORMAL)(pixels, generator()), made)
    mean, std = (torch.tensor(v).view(1, 3, 1, 1) for v in (NORMAL.mean, NORMAL.std))
    assert torch.allclose(made, (pixels / 255 - mean) / std, atol=1e-6)
    assert made.is_contiguous(memory_format=torch.channels_last)
    assert made.dtype == torch.float32


def test_chances_are_fair() -> None:
    """Flips half of the time; each of the nine positions of a crop, each centre equally often."""
    number = 9_000
    pixel = torch.zeros(1, 1, 3, 3, dtype=torch.uint8)
    pixel[0, 0, 1, 1] = 255  # where the middle goes tells the shift
    normal = Normalization((0.0,), (1.0,))
    moved = Augmentation(True, 1, 0, normal)(pixel.expand(number, 1, 3, 3), generator())
    assert torch.allclose(moved.mean(0), torch.full((1, 3, 3), 1 / 9), atol=0.015)
    pixel = torch.zeros(1, 1, 1, 2, dtype=torch.uint8)
    pixel[..., 0] = 255
    flipped = Augmentation(True, 0, 0, normal)(pixel.expand(number, 1, 1, 2), generator())
    assert abs(flipped[..., 1].mean() - 0.5) < 0.02
    white = torch.full((number, 1, 3, 3), 255, dtype=torch.uint8)
    cut = Augmentation(False, 0, 1, normal)(white, generator())
    assert torch.allclose(cut.mean(0), torch.full((1, 3, 3), 8 / 9), atol=0.015)


def test_a_slice_outside_of_the_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="not in a batch"):
        Augmentation(True, 4, 0, NORMAL)(images(4).pixels, generator(), total=6, offset=3)

"""Random operations on images, against Pillow's, which do one image at a time."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from torch import Tensor

from prnas.config.retrain import RetrainDataConfig
from prnas.data import augment_operations as operations
from prnas.data.augment import Augmentation
from prnas.data.augment_mixup import mixup
from prnas.data.augment_random import KINDS, ColorJitter, RandAugment
from prnas.data.dataset import Normalization, load, normalization
from prnas.data.streams import Stream
from tests.support.generators import generator
from tests.support.settings import write_images

NORMAL = Normalization((0.5, 0.3, 0.2), (0.25, 0.2, 0.5))
FILL = torch.tensor([10.0, 100.0, 200.0])


def pictures(number: int = 5, size: tuple[int, int] = (9, 12), channels: int = 3) -> Tensor:
    """Noise in a different range for each image."""
    source = np.random.default_rng(0)
    return torch.from_numpy(
        np.stack(
            [
                source.integers(10 * n, 256 - 20 * n, (channels, *size)).astype(np.uint8)
                for n in range(number)
            ]
        )
    )


def by_pillow(images: Tensor, change: Callable[[Image.Image, int], Image.Image]) -> Tensor:
    def changed(number: int, image: Tensor) -> Tensor:
        grey = image.shape[0] == 1
        picture = Image.fromarray((image[0] if grey else image.permute(1, 2, 0)).numpy())
        array = torch.from_numpy(np.array(change(picture, number)))
        return array[None] if grey else array.permute(2, 0, 1)

    return torch.stack([changed(number, image) for number, image in enumerate(images)])


FACTORS = torch.tensor([0.1, 0.6, 1.0, 1.5, 1.9])


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (operations.brightness, ImageEnhance.Brightness),
        (operations.contrast, ImageEnhance.Contrast),
        (operations.saturation, ImageEnhance.Color),
    ],
)
def test_colours_are_pillows(ours: object, theirs: object, channels: int) -> None:
    """To the rounding of the last step: Pillow cuts off."""
    images = pictures(channels=channels)
    expected = by_pillow(images, lambda one, n: theirs(one).enhance(float(FACTORS[n])))  # pyright: ignore
    found = ours(images, FACTORS)  # pyright: ignore
    assert (found.int() - expected.int()).abs().max() <= 1
    assert torch.equal(found[2], images[2])


def test_sharpness_is_pillows() -> None:
    images = pictures()
    smooth = operations.sharpness(images, torch.zeros(5))
    expected = by_pillow(images, lambda one, _: one.filter(ImageFilter.SMOOTH))
    assert (smooth.int() - expected.int()).abs().max() <= 1
    sharper = operations.sharpness(images, torch.full((5,), 1.9)).float()
    assert sharper.var() > images.float().var() > smooth.float().var()
    tiny = pictures(size=(2, 5))
    assert torch.equal(operations.sharpness(tiny, FACTORS), tiny)


@pytest.mark.parametrize("channels", [1, 3])
def test_tables_of_values_are_pillows(channels: int) -> None:
    images = pictures(channels=channels, size=(40, 30))
    images[1] = 77  # one value only
    for bits in (4, 6, 8):
        expected = by_pillow(images, lambda one, _, bits=bits: ImageOps.posterize(one, bits))
        assert torch.equal(operations.posterize(images, bits), expected)
    for threshold in (0, 90, 256):
        expected = by_pillow(images, lambda one, _, at=threshold: ImageOps.solarize(one, at))
        assert torch.equal(operations.solarize(images, threshold), expected)
    expected = by_pillow(images, lambda one, _: ImageOps.equalize(one))
    assert torch.equal(operations.equalize(images), expected)
    expected = by_pillow(images, lambda one, _: ImageOps.autocontrast(one))
    assert (operations.autocontrast(images).int() - expected.int()).abs().max() <= 1


def test_geometry_in_cases_without_interpolation() -> None:
    images = pictures(2, (8, 8))
    quarter = torch.full((2,), 90.0)
    assert torch.equal(operations.rotate(images, quarter, FILL), images.rot90(1, (2, 3)))
    moved = operations.translate(images, torch.tensor([0.25, -0.25]), FILL)
    assert torch.equal(moved[0, :, :, 2:], images[0, :, :, :-2])
    assert torch.equal(moved[1, :, :, :-2], images[1, :, :, 2:])
    assert (moved[0, :, :, :2] == FILL[:, None, None]).all()
    down = operations.translate(images, torch.tensor([0.25, 0.0]), FILL, down=True)
    assert torch.equal(down[0, :, 2:], images[0, :, :-2])
    assert torch.equal(down[1], images[1])
    # Sheared by 2: the row half a pixel below the middle moves by one pixel.
    wide = pictures(1, (4, 6))
    sheared = operations.shear(wide, torch.tensor([2.0]), FILL)
    assert torch.equal(sheared[0, :, 2, :-1], wide[0, :, 2, 1:])
    assert torch.equal(sheared[0, :, 1, 1:], wide[0, :, 1, :-1])
    turned = operations.shear(wide.transpose(2, 3), torch.tensor([2.0]), FILL, down=True)
    assert torch.equal(turned.transpose(2, 3), sheared)


@given(
    seed=st.integers(0, 50),
    jitter=st.sampled_from([0.0, 0.4]),
    number=st.integers(0, 3),
    magnitude=st.integers(0, 30),
    parts=st.integers(1, 3),
    color=st.sampled_from(["mean", "black"]),
)
def test_every_image_is_treated_alone(
    seed: int, jitter: float, number: int, magnitude: int, parts: int, color: str
) -> None:
    """As if one process held the whole batch; and what is off draws nothing."""
    images = pictures(6)
    vary = Augmentation(True, 2, 3, NORMAL, color, jitter, number, magnitude)  # pyright: ignore
    source = generator(seed)
    whole = vary(images, source)
    size = 6 // parts
    for offset in range(0, 6 - size + 1, size):
        own = generator(seed)
        part = vary(images[offset : offset + size], own, 6, offset)
        assert torch.equal(part, whole[offset : offset + size])
        assert torch.equal(own.get_state(), source.get_state())
    if not (jitter or number):
        plain = Augmentation(True, 2, 3, NORMAL, color)  # pyright: ignore
        assert torch.equal(plain(images, generator(seed)), whole)


@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_each_operation_of_rand_augment(kind: str, channels: int) -> None:
    """The random number that stands for it chooses it, in both directions; magnitude 0 is none."""
    images = pictures(2, (18, 20), channels)
    chosen = (list(KINDS).index(kind) + 0.5) / len(KINDS)
    draws = torch.tensor([[chosen, 0.2], [chosen, 0.8]], dtype=torch.float64)
    fill = (0.0,) * channels
    found = RandAugment(1, 15, fill)(images, draws)
    alone = KINDS[kind](images, 0.5, torch.tensor([-1.0, 1.0]), torch.tensor(fill))
    assert torch.equal(found, alone)
    assert found.dtype == torch.uint8
    same = kind == "identity" or (kind == "saturation" and channels == 1)
    assert torch.equal(found, images) == same
    assert torch.equal(images, pictures(2, (18, 20), channels))  # the caller's stay
    if kind not in ("autocontrast", "equalize"):
        assert torch.equal(RandAugment(1, 0, fill)(images, draws), images)


def test_color_jitter_has_its_range() -> None:
    images = torch.full((3, 3, 4, 4), 100, dtype=torch.uint8)
    draws = torch.tensor([[0.0, 0.5, 0.5], [0.5, 0.5, 0.5], [1.0, 0.5, 0.5]], dtype=torch.float64)
    found = ColorJitter(0.4)(images, draws)
    assert found[:, 0, 0, 0].tolist() == [60, 100, 140]


def test_mixup_blends_with_a_partner() -> None:
    images = torch.randn(8, 3, 2, 2, generator=generator(1), dtype=torch.float64)
    mixed = mixup(images, 0.4, generator(2))
    assert sorted(mixed.partners.tolist()) == list(range(8))
    assert ((mixed.shares >= 0.5) & (mixed.shares <= 1)).all()
    for number in range(8):
        share, other = mixed.shares[number], images[mixed.partners[number]]
        assert torch.equal(mixed.images[number], images[number] * share + other * (1 - share))
    half = mixup(images[4:], 0.4, generator(2), total=8, offset=4)
    assert len(half.shares) == 4
    large = torch.zeros(4000, 1, 1, 1, dtype=torch.float64)
    # The larger of s and 1 - s has mean 3/4 if s is even, as in Beta(1, 1).
    assert float(mixup(large, 1.0, generator()).shares.mean()) == pytest.approx(0.75, abs=0.02)


def test_streamed_and_in_memory_alike(tmp_path: Path) -> None:
    path = write_images(tmp_path / "images.npz")
    found: list[Tensor] = []
    for storage in ("memory", "stream"):
        config = RetrainDataConfig.model_validate(
            {"name": f"npz:{path}", "storage": storage, "workers": 0}
            | {"rand_augment": 2, "color_jitter": 0.3}
        )
        data = load(config, torch.device("cpu"), lambda note: None)
        vary = Augmentation.of(config, normalization(data.train))
        pixels, _ = Stream(data.train, torch.arange(96), 3).next(16)
        found.append(vary(pixels, generator(5)))
        data.close()
    assert torch.equal(*found)

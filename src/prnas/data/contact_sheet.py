"""A contact sheet: some images, and random augmentations of each."""

import io
import math
import unicodedata
from collections.abc import Callable

import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from prnas.data.augment import Augmentation
from prnas.data.dataset import DataSet

NUMBER = 12  # Number of images.
VARIANTS = 6  # Number of augmentations of each image.
_TILE = 72  # Least size in pixels; small images are enlarged by whole factors, and stay sharp.
_GAP, _MARGIN, _LABEL = 4, 16, 18  # The last is the height of a line of text.
_PAPER, _INK, _DIM = "#ffffff", "#222222", "#777777"


def contact_sheet(data: DataSet, augmentation: Augmentation, seed: int) -> bytes:
    """A PNG of images of many classes, each followed by random variants of it."""
    generator = torch.Generator().manual_seed(seed)
    indices = _spread_over_classes(data.train.labels, generator)
    originals = data.train.fetch(indices).cpu()
    repeated = originals.repeat_interleave(VARIANTS, 0)
    mean, std = augmentation.normalization.tensors(repeated.device)
    normalized = augmentation(repeated, generator)
    varied = normalized.mul(std).add(mean).mul(255).round().clamp(0, 255).byte()
    names = [data.class_names[label] for label in data.train.labels[indices].tolist()]
    return _draw(originals, varied.unflatten(0, (len(indices), VARIANTS)), names)


def _spread_over_classes(labels: Tensor, generator: torch.Generator) -> Tensor:
    """Random indices, of as many classes as possible."""
    order = torch.randperm(len(labels), generator=generator)
    groups: dict[int, list[int]] = {}
    for index, label in zip(order.tolist(), labels[order].tolist(), strict=True):
        groups.setdefault(label, []).append(index)
    rounds = (
        [group[turn] for _, group in sorted(groups.items()) if turn < len(group)]
        for turn in range(max(map(len, groups.values())))
    )
    chosen: list[int] = []
    for group in rounds:
        if len(group) > NUMBER:  # A random choice, if there are more classes than tiles.
            group = [group[index] for index in torch.randperm(len(group), generator=generator)]
        chosen += group[: NUMBER - len(chosen)]
        if len(chosen) == NUMBER:
            break
    return torch.tensor(chosen)


def _draw(originals: Tensor, varied: Tensor, names: list[str]) -> bytes:
    height, width = originals.shape[2:]
    scale = max(1, math.ceil(_TILE / max(height, width)))
    shrink = min(1.0, 4 * _TILE / max(height, width))
    size = max(1, round(width * scale * shrink)), max(1, round(height * scale * shrink))
    across, down = size[0] + _GAP, size[1] + _GAP + _LABEL
    block = across * (1 + VARIANTS) + _GAP  # The original stands a little apart.
    columns = 2 if len(names) > 1 else 1
    rows = -(-len(names) // columns)
    width = columns * (block + 2 * _MARGIN) - _GAP
    height = 2 * _MARGIN + _LABEL + rows * down - _GAP
    sheet = Image.new("RGB", (width, height), _PAPER)
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(13)
    for column in range(columns):
        left = _MARGIN + column * (block + 2 * _MARGIN)
        draw.text((left, _MARGIN - 6), "original", _DIM, font)
        draw.text((left + across + _GAP, _MARGIN - 6), "augmented", _DIM, font)
    for number, name in enumerate(names):
        left = _MARGIN + (number // rows) * (block + 2 * _MARGIN)
        top = _MARGIN + _LABEL + (number % rows) * down
        sheet.paste(_image(originals[number], size), (left, top))
        for variant in range(VARIANTS):
            x = left + (1 + variant) * across + _GAP
            sheet.paste(_image(varied[number, variant], size), (x, top))
        label = _fitting(name, lambda text: draw.textlength(text, font), block)
        draw.text((left, top + size[1] + 1), label, _INK, font)
    file = io.BytesIO()
    sheet.save(file, "PNG", optimize=True)
    return file.getvalue()


def _image(pixels: Tensor, size: tuple[int, int]) -> Image.Image:
    """A tile; a channel that is neither grey nor a colour is left out."""
    channels = pixels.shape[0]
    plane = pixels[0] if channels < 3 else pixels[:3].permute(1, 2, 0)
    image = Image.fromarray(plane.contiguous().numpy()).convert("RGB")
    larger = size[0] >= image.width
    return image.resize(size, Image.Resampling.NEAREST if larger else Image.Resampling.BILINEAR)


def plain(letter: str) -> str:
    """A letter without its accents, if that is ASCII: the font has no others, and draws a box."""
    letters = unicodedata.normalize("NFKD", letter)
    base = "".join(character for character in letters if not unicodedata.combining(character))
    return base if base and base.isascii() else letter


def _fitting(text: str, length: Callable[[str], float], most: int) -> str:
    """The text, cut off with dots where it is longer than `most`."""
    text = "".join(plain(letter) if letter.isprintable() else "?" for letter in text)[:200]
    end = ""
    while text and length(text + end) > most:
        text, end = text[:-1], "..."
    return text + end

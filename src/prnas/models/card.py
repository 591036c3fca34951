"""A trained model's card: all that is to be known of it but its weights."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from prnas.config.choices import NetworkKind
from prnas.io.errors import FormatError
from prnas.io.reading import check_header, parse_json, validated
from prnas.space.network_plan import Stem, genotype_problems
from prnas.space.resnet import RESNET, check_resnet
from prnas.space.schedule import MIN_CELLS, MOST_CELLS, MOST_CHANNELS
from prnas.space.shape import Output
from prnas.space.zoo import OptionalGenotypeField

FORMAT = "prnas-model"
VERSION = 1
MOST_CLASSES = 100_000
OWN_CHECKSUM = "card_sha256"
MOST_VALUES = 2**24  # largest image, also within the network: a card must not ask for all memory

Side = Annotated[int, Field(ge=1, le=100_000)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Name = Annotated[str, Field(max_length=10_000)]


class ModelCard(BaseModel):
    """The description of a trained model: how to build the network, and how to feed it.

    `mean` and `std` normalise each channel of pixels from 0 to 1. `config` is the config of the
    training, and `results` what it ended with: for people, nothing is decided by them.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True
    )

    kind: NetworkKind = "cells"
    genotype: OptionalGenotypeField  # None of a plain network, whose `cells` are blocks.
    channels: Annotated[int, Field(ge=1, le=MOST_CHANNELS)]
    cells: Annotated[int, Field(ge=MIN_CELLS, le=MOST_CELLS)]
    stem: Stem = "cifar"
    output: Output = "concat"
    input_shape: Annotated[tuple[Side, Side, Side], Field(strict=False)]  # channels, height, width
    class_names: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)]
    mean: Annotated[tuple[Number, ...], Field(strict=False)]
    std: Annotated[tuple[Positive, ...], Field(strict=False)]
    config: dict[str, Any] = {}
    results: dict[str, Any] = {}

    @model_validator(mode="after")
    def _fits(self) -> "ModelCard":
        channels = self.input_shape[0]
        for name, values in (("mean", self.mean), ("std", self.std)):
            if len(values) != channels:
                raise ValueError(f"{name} must have {channels} values, one a channel")
        if values_inside(self.input_shape, self.channels, self.stem) > MOST_VALUES:
            limit = f"an image has at most {MOST_VALUES} values, after the stem too"
            raise ValueError(f"input_shape: {limit}")
        if len(self.class_names) > MOST_CLASSES:
            raise ValueError(f"at most {MOST_CLASSES} classes")
        if self.stem == "imagenet" and self.channels % 2:
            raise ValueError("the ImageNet stem needs an even number of channels")
        if (self.genotype is None) != (self.kind == RESNET):
            raise ValueError("a network of cells has a genotype, and a resnet has none")
        problems = (
            check_resnet(self.cells)
            if self.genotype is None
            else genotype_problems(self.genotype, self.cells, self.output, self.stem)
        )
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    @property
    def reading(self) -> dict[str, str] | None:
        """The steps from an image file to pixels, in words; none if no file has such channels."""
        channels, height, width = self.input_shape
        if channels not in (1, 3):
            return None
        grey = "grey, 0.299 red + 0.587 green + 0.114 blue"
        return {
            "orientation": "upright, by the EXIF tag",
            "transparency": "on white",
            "depth": "8 bits; of 16 the upper 8",
            "color": grey if channels == 1 else "red, green, blue, in this order",
            "crop": f"the middle, as large as fits with the proportions {width} : {height}",
            "size": f"{width} x {height} pixels, width x height",
            "filter": "Pillow's bilinear (antialiased: Image.resize with box=crop, not rounded)",
            "jpeg": "may be decoded at 1/2, 1/4 or 1/8 before, both sides staying at least "
            f"{2 * max(height, width)} (Image.draft)",
            "range": "0 to 1: 8-bit values divided by 255",
            "layout": "n x channels x height x width, single precision",
            "normalization": "(pixels - mean) / std, for each channel",
        }

    def dumps(self, weights_sha256: str) -> str:
        """The card as JSON, with checksums of itself and of the file of its weights."""
        head = {"format": FORMAT, "version": VERSION, "weights_sha256": weights_sha256}
        own = self.model_dump(mode="json")
        if self.kind == "cells":
            del own["kind"]  # said by the genotype
        if self.reading is not None:
            own["reading"] = self.reading
        fields = {**head, **own}
        fields[OWN_CHECKSUM] = _checksum(fields)
        return json.dumps(fields, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def loads(cls, text: str) -> tuple["ModelCard", str]:
        """A card and the checksum of its weights; a `FormatError` names every problem."""
        parsed = parse_json(text)
        fields = check_header(parsed, FORMAT, VERSION)
        own = fields.pop(OWN_CHECKSUM, None)
        fields.pop("reading", None)  # follows from the shape
        checksum = fields.pop("weights_sha256", None)
        if not isinstance(checksum, str) or not re.fullmatch("[0-9a-f]{64}", checksum):
            raise FormatError(["weights_sha256: must be a SHA-256 checksum in hexadecimal digits"])
        card = validated(_ADAPTER, fields, "model card")
        others = {key: value for key, value in parsed.items() if key != OWN_CHECKSUM}
        if own is not None and own != _checksum(others):
            reason = "it is damaged, or was changed since it was written; if the change is wanted, "
            raise FormatError([f"{reason}delete the line with {OWN_CHECKSUM}"])
        return card, checksum


def values_inside(shape: tuple[int, int, int], channels: int, stem: Stem) -> int:
    """The most values of one image before and after a network's stem."""
    height, width = shape[1:]
    # Channels at the image's own resolution.
    widest = 3 * channels if stem == "cifar" else -(-channels // 8)
    return max(shape[0], widest) * height * width


def _checksum(fields: Mapping[str, Any]) -> str:
    """The checksum of the values, however they are written."""
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


_ADAPTER = TypeAdapter(ModelCard)

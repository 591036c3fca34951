"""The digits inside the package: real images for a first search, without a network."""

import io
from importlib import resources

import numpy as np

from prnas.data.readers import ArrayReader, ImageSet, LabelledImages

_FILE = "digits.npz"


def read_digits() -> ImageSet:
    """1,438 training and 359 test images, 8x8, grey. `digits.md` names their source."""
    raw = resources.files("prnas.data.formats").joinpath(_FILE).read_bytes()
    with np.load(io.BytesIO(raw), allow_pickle=False) as file:
        parts = [
            LabelledImages(
                ArrayReader(file[f"x_{name}"][:, None]), file[f"y_{name}"].astype(np.int64)
            )
            for name in ("train", "test")
        ]
    return ImageSet(parts[0], parts[1], tuple(map(str, range(10))))

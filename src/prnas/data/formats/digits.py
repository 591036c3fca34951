"""The digits inside the package: real images for a first search, without a network."""

import io
from importlib import resources

import numpy as np

from prnas.data.readers import ArrayRows, Part, Source

_FILE = "digits.npz"


def read_digits() -> Source:
    """1,438 training and 359 test images, 8x8, grey. `digits.md` tells where they are from."""
    raw = resources.files("prnas.data.formats").joinpath(_FILE).read_bytes()
    with np.load(io.BytesIO(raw), allow_pickle=False) as file:
        parts = [
            Part(ArrayRows(file[f"x_{name}"][:, None]), file[f"y_{name}"].astype(np.int64))
            for name in ("train", "test")
        ]
    return Source(parts[0], parts[1], tuple(map(str, range(10))))

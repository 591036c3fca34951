"""The automatic test part: the same on every computer and in every release."""

import hashlib
from collections.abc import Sequence

import numpy as np

from prnas.data.readers import Indices
from prnas.io.errors import UserError


def stratified(
    labels: Indices, keys: Sequence[bytes], test_share: float, class_names: Sequence[str]
) -> tuple[Indices, Indices]:
    """Indices of the training and of the test images: of every class the same share.

    The choice depends only on the images' keys (names, for example): adding an image moves few
    others, and no random generator is involved.
    """
    order = np.array([hashlib.sha256(key).digest() for key in keys], dtype="S32")
    test: list[Indices] = []
    for label, name in enumerate(class_names):
        indices = np.flatnonzero(labels == label)
        if len(indices) == 1:
            raise UserError(
                f"class '{name}' has one image only; a training and a test part need two"
            )
        if len(indices):
            number = min(max(round(len(indices) * test_share), 1), len(indices) - 1)
            test.append(indices[np.argsort(order[indices], kind="stable")[:number]])
    chosen = np.zeros(len(labels), bool)
    chosen[np.concatenate(test)] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)

"""The automatic test part: the same on every computer and in every release."""

import hashlib
from collections.abc import Sequence

import numpy as np

from prnas.data.readers import Places
from prnas.io.errors import UserError


def stratified(
    labels: Places, keys: Sequence[bytes], test_share: float, class_names: Sequence[str]
) -> tuple[Places, Places]:
    """Places of the training and of the test images: of every class the same share.

    Which images are chosen follows from their keys (names, say) alone: one image more moves few
    others, and no library's random numbers are involved.
    """
    order = np.array([hashlib.sha256(key).digest() for key in keys], dtype="S32")
    test: list[Places] = []
    for label, name in enumerate(class_names):
        places = np.flatnonzero(labels == label)
        if len(places) == 1:
            raise UserError(
                f"class '{name}' has one image only; a training and a test part need two"
            )
        if len(places):
            number = min(max(round(len(places) * test_share), 1), len(places) - 1)
            test.append(places[np.argsort(order[places], kind="stable")[:number]])
    chosen = np.zeros(len(labels), bool)
    chosen[np.concatenate(test)] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)

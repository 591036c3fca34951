"""What `prnas fit` finds on several kinds of pictures, beside networks that need no search.

    python -m benchmarks.fits digits --minutes 5 --seeds 0 1 2
    python -m benchmarks.fits cifar10 --images 1000 --minutes 15 --seeds 0 1 2
    python -m benchmarks.fits --csv results/fits.csv                  # of all that are done

With `--images`, that many training images and up to 2,000 test images of the set are drawn by the
seed, as many of each class, and written as a folder of PNG files, as a user's pictures would be. A
fit that was stopped goes on; one that is done is only read. Each fit has one thread.
"""

import argparse
import csv
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch
from PIL import Image

import prnas
from prnas.config.sections import ImagesConfig
from prnas.data.dataset import load
from prnas.data.storage import Images
from prnas.fitting.configs import SEARCHED
from prnas.fitting.folder import read_results, read_state
from prnas.fitting.names import SEARCH
from prnas.runs.names import GENOTYPE
from prnas.space.genotype import Genotype
from prnas.space.nasbench201.truth import Truth, truth_of

TEST_IMAGES = 2000
TIMES = "seconds.json"  # How long the fits of a folder took.
COLUMNS = (
    *(
        "set",
        "fit",
        "seed",
        "minutes",
        "seconds",
        "image_size",
        "search_epochs",
        "network",
        "label",
    ),
    *("parameters", "macs", "epochs", "validation_error", "test_error", "error_low", "error_high"),
    *("test_images", "best", "only_found", "only_other", "p", "cell", "true_accuracy"),
)


def drawn(labels: Sequence[int], number: int, random: Random) -> list[int]:
    """Indices of so many images, as many of each class."""
    classes = sorted(set(labels))
    chosen: list[int] = []
    for label in classes:
        members = [index for index, own in enumerate(labels) if own == label]
        chosen += random.sample(members, min(number // len(classes), len(members)))
    return chosen


def write_pictures(name: str, number: int, seed: int, folder: Path) -> None:
    """A folder of pictures in a training and a test part, drawn from a set."""
    data = load(ImagesConfig(name=name), torch.device("cpu"))
    random = Random(f"pictures/{seed}")
    parts: dict[str, tuple[Images, int]] = {
        "train": (data.train, number),
        "test": (data.test, TEST_IMAGES),
    }
    for part, (images, amount) in parts.items():
        for index in drawn(images.labels.tolist(), amount, random):
            pixels = images.fetch(torch.tensor([index]))[0].permute(1, 2, 0).squeeze(-1)
            own = folder / part / data.class_names[int(images.labels[index])].replace("/", "-")
            own.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels.numpy()).save(own / f"{index}.png")
    data.close()


def fitted(name: str, images: int | None, minutes: float, seed: int, runs: Path) -> Path:
    """The folder of a fit that is done."""
    short = Path(name.rpartition(":")[2]).stem
    title = short if images is None else f"{short}-{images}"
    folder = runs / title / f"seed-{seed}"
    if folder.exists():
        prnas.fit(resume=folder)
        return folder
    source = name
    if images is not None:
        pictures = runs / "pictures" / f"{title}-{seed}"
        if not pictures.exists():
            half = pictures.with_name(f"{pictures.name}.half")
            write_pictures(name, images, seed, half)
            half.rename(pictures)
        source = str(pictures)
    start = time.perf_counter()
    prnas.fit(source, minutes, seed=seed, runs=folder.parent, name=folder.name, threads=1)
    seconds = round(time.perf_counter() - start, 1)
    (folder.parent / f"{folder.name}.{TIMES}").write_text(json.dumps(seconds))
    return folder


def records(folder: Path) -> Iterator[dict[str, Any]]:
    """A record for each network of a fit that is done.

    With what was found, its cell, and the accuracy that NAS-Bench-201 has for it on CIFAR-10.
    """
    results, state = read_results(folder), read_state(folder)
    assert results is not None
    compared = {each["other"]: each for each in results["compared"]}
    times = folder.parent / f"{folder.name}.{TIMES}"
    search = folder / SEARCH / GENOTYPE
    truth = truth_of(Genotype.loads(search.read_text())) if search.exists() else None
    for network in results["networks"]:
        own = compared.get(network["name"], {})
        low, high = network["interval_95"]
        yield {
            "set": folder.parent.name,
            "fit": f"{folder.parent.name}, seed {state.request.seed}",
            "seed": state.request.seed,
            "minutes": state.request.minutes,
            "seconds": json.loads(times.read_text()) if times.exists() else "",
            "image_size": state.plan.rung.size,
            "search_epochs": state.plan.search.epochs,
            "network": network["name"],
            "label": network["label"],
            **{key: network[key] for key in ("parameters", "macs", "epochs")},
            "validation_error": _error(network["validation"]),
            "test_error": _error(network["accuracy"]),
            "error_low": _error(high),
            "error_high": _error(low),
            "test_images": network["images"],
            "best": int(network["name"] == results["best"]),
            **{key: own.get(key, "") for key in ("only_found", "only_other", "p")},
            **_by_the_table(truth if network["name"] == SEARCHED else None),
        }


def _error(accuracy: float) -> float:
    return round(1 - accuracy, 8)


def _by_the_table(truth: Truth | None) -> dict[str, Any]:
    if truth is None:
        return {"cell": "", "true_accuracy": ""}
    return {"cell": truth.string, "true_accuracy": truth.data_sets["cifar10"].test}


def write_records(runs: Path, file: Path) -> int:
    """The records of all fits that are done; the number of these."""
    done = [path.parent for path in sorted(runs.glob("*/seed-*/results.json"))]
    with file.open("w", encoding="utf-8", newline="") as text:
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for folder in done:
            writer.writerows(records(folder))
    return len(done)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fits", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("data", nargs="?", help="a set of `prnas data`, or npz:FILE")
    parser.add_argument("--images", type=int, help="training images to draw; default: all")
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--runs", type=Path, default=Path("runs/fits"))
    parser.add_argument("--csv", type=Path, help="write the records of all fits to this file")
    options = parser.parse_args()
    if options.data is not None:
        for seed in options.seeds:
            folder = fitted(options.data, options.images, options.minutes, seed, options.runs)
            for record in records(folder):
                accuracy = 100 * (1 - record["test_error"])
                print(f"{folder}: {record['label']}: {accuracy:.1f} %", flush=True)
    if options.csv is not None:
        print(f"{options.csv}: {write_records(options.runs, options.csv)} fits")


if __name__ == "__main__":
    main()

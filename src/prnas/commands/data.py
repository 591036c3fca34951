"""`prnas data`: the sets of images, what is in one, and how augmentation varies it."""

import shlex
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from prnas.config.search import DataConfig
from prnas.data import catalog
from prnas.io.atomic import write_output
from prnas.io.errors import UserError
from prnas.io.reading import validated
from prnas.terminal.output import facts, show, show_heading, show_json, show_next, show_prose, table

_MANY = 20  # classes; more are not listed one by one


def run_list(root: Path | None, sample: Path | None, as_json: bool) -> None:
    """All sets that have names."""
    if sample is not None:
        raise UserError("--sample needs the name of a set, e.g. prnas data digits --sample out.png")
    folder = catalog.default_root() if root is None else root
    rows = [_entry(name, about, folder) for name, about in catalog.ABOUT.items()]
    if as_json:
        show_json(rows)
        return
    show_heading("Sets of images")
    lines = [
        [
            row["name"],
            f"{row['train']:,}",
            f"{row['test']:,}",
            _size(row["shape"]),
            str(row["classes"]),
            row["where"],
        ]
        for row in rows
    ]
    headings = ["name", "train", "test", "size", "classes", "where"]
    show(table(headings, lines, right=(1, 2, 4)), "")
    origins = [
        (row["name"], f"{row['what']}, from {row['source']}; licence: {row['licence']}")
        for row in rows
    ]
    own = [
        ("folder:PATH", "your images, a folder for each class; or train and test folders of these"),
        ("npz:PATH", "your arrays x_train and y_train and, if you have them, x_test and y_test"),
    ]
    show(facts([*origins, *own]), "")
    show_prose(
        f"Downloads are kept in {folder}. Set {catalog.ROOT_VARIABLE}, or data.root of a search, "
        "to keep them elsewhere, or to use files that you have."
    )
    show_next("prnas data digits --sample digits.png")


def run_one(settings: dict[str, Any], sample: Path | None, seed: int, as_json: bool) -> None:
    """One set: facts, and a contact sheet of augmented samples if a file for it is named."""
    config = validated(TypeAdapter(DataConfig), settings, "data")
    catalog.check_name(config.name)
    if seed < 0:
        raise UserError(f"--seed must be 0 or more, got {seed}")
    if sample is not None:
        _check_target(sample)
    import torch

    from prnas.data import dataset as images

    notes: list[str] = []
    loaded = images.load(config, torch.device("cpu"), notes.append)
    try:
        found = _facts(config, loaded, notes)
        if sample is not None:
            _write_sample(config, loaded, found, sample, seed)
    finally:
        loaded.close()
    if as_json:
        show_json(found)
        return
    _show(config, found)
    if sample is None:
        show_next("prnas data " + shlex.join([config.name, "--sample", "sample.png"]))
    else:
        show("", f"wrote {sample}")
        show_next("prnas search " + shlex.join(["--data", config.name]))


def _entry(name: str, about: catalog.About, root: Path) -> dict[str, Any]:
    spec = catalog.SPECS.get(name)
    if spec is None:
        where = "in the package"
    else:
        found = catalog.find(spec, root)
        where = "downloaded on first use" if found is None else str(found)
    return {
        "name": name,
        "what": about.what,
        "train": about.train,
        "test": about.test,
        "shape": list(about.shape),
        "classes": about.classes,
        "where": where,
        "licence": about.licence,
        "source": about.source,
    }


def _size(shape: list[int]) -> str:
    channels, height, width = shape
    kinds = {1: "grey", 3: "colour"}
    return f"{width}x{height} {kinds.get(channels, f'{channels} channels')}"


def _facts(config: DataConfig, loaded: Any, notes: list[str]) -> dict[str, Any]:
    from prnas.data.dataset import InMemory, normalization

    counts = [
        part.labels.bincount(minlength=loaded.num_classes).tolist()
        for part in (loaded.train, loaded.test)
    ]
    values = normalization(loaded.train)
    return {
        "name": config.name,
        "train": len(loaded.train),
        "test": len(loaded.test),
        "shape": list(loaded.shape),
        "classes": [
            {"name": name, "train": train, "test": test}
            for name, train, test in zip(loaded.class_names, *counts, strict=True)
        ],
        "mean": list(values.mean),
        "std": list(values.std),
        "storage": "memory" if isinstance(loaded.train, InMemory) else "stream",
        "notes": notes,
    }


def _show(config: DataConfig, found: dict[str, Any]) -> None:
    classes: list[dict[str, Any]] = found["classes"]
    counts = [one["train"] for one in classes]
    few, many = min(counts), max(counts)
    balance = f"{few:,}" if few == many else f"{few:,} to {many:,}"
    pairs = [
        ("images", f"{found['train']:,} for training, {found['test']:,} for testing"),
        ("size", _size(found["shape"])),
        ("classes", f"{len(classes)}, of {balance} training images each"),
        ("mean", _numbers(found["mean"])),
        ("std", _numbers(found["std"])),
        ("storage", _storage(found)),
    ]
    about = catalog.ABOUT.get(config.name)
    if about is not None:
        pairs += [("source", about.source), ("licence", about.licence)]
    pairs += [("note", note) for note in found["notes"]]
    show_heading(config.name)
    show(facts(pairs))
    if len(classes) <= _MANY:
        rows = [[one["name"], f"{one['train']:,}", f"{one['test']:,}"] for one in classes]
        show("", table(["class", "train", "test"], rows, right=(1, 2)))


def _numbers(values: list[float]) -> str:
    return ", ".join(f"{value:.4f}" for value in values)


def _storage(found: dict[str, Any]) -> str:
    channels, height, width = found["shape"]
    size = (found["train"] + found["test"]) * channels * height * width / 1e6
    where = "kept in memory" if found["storage"] == "memory" else "read as they are needed"
    return f"{where} ({size:,.1f} MB)"


def _check_target(path: Path) -> None:
    """Known to be wrong before the images are loaded, which may take a while."""
    if path.suffix.lower() != ".png":
        raise UserError(f"--sample needs a name that ends in .png, got '{path}'")
    if path.is_dir():
        raise UserError(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise UserError(f"cannot write {path}: there is no folder {path.parent}")


def _write_sample(
    config: DataConfig, loaded: Any, found: dict[str, Any], path: Path, seed: int
) -> None:
    from prnas.data.augment import Augmentation
    from prnas.data.contact_sheet import contact_sheet
    from prnas.data.dataset import Normalization

    values = Normalization(tuple(found["mean"]), tuple(found["std"]))
    augmentation = Augmentation(config.flip, config.crop_padding, config.cutout, values)
    try:
        write_output(path, contact_sheet(loaded, augmentation, seed))
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None

"""`prnas data`: the sets of images, the content of one, and samples of its augmentation."""

import shlex
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from prnas.commands.options import DataOptions
from prnas.config.search import DataConfig
from prnas.data import catalog
from prnas.io.atomic import write_output
from prnas.io.errors import UserError, cannot
from prnas.io.reading import validated
from prnas.terminal.output import facts, show, show_heading, show_json, show_next, show_prose, table

_MOST_CLASSES = 20  # More classes are counted, not listed.


def run(name: str | None, options: DataOptions) -> None:
    if name is None:
        _show_sets(options)
    else:
        _show_set(name, options)


def _show_sets(options: DataOptions) -> None:
    """List all sets that have names."""
    if options.sample is not None:
        raise UserError("--sample needs the name of a set, e.g. prnas data digits --sample out.png")
    folder = options.root or catalog.default_root()
    rows = [_entry(name, about, folder) for name, about in catalog.ABOUT.items()]
    if options.as_json:
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
        f"Downloads go to {folder}. Set {catalog.ROOT_VARIABLE}, or data.root of a search, to use "
        "another folder, or files that you have."
    )
    show_next("prnas data digits --sample digits.png")


def _show_set(name: str, options: DataOptions) -> None:
    """Show facts of a set, and draw a contact sheet of augmented samples for `--sample`."""
    config = _config(name, options)
    catalog.check_name(config.name)
    if options.seed < 0:
        raise UserError(f"--seed must be 0 or more, got {options.seed}")
    if options.sample is not None:
        _check_target(options.sample)
    import torch

    from prnas.data import dataset

    notes: list[str] = []
    loaded = dataset.load(config, torch.device("cpu"), notes.append)
    try:
        summary = _summary(config, loaded, notes)
        if options.sample is not None:
            _write_sample(config, loaded, summary, options.sample, options.seed)
    finally:
        loaded.close()
    if options.as_json:
        show_json(summary)
        return
    _show(config, summary)
    if options.sample is None:
        show_next("prnas data " + shlex.join([config.name, "--sample", "sample.png"]))
    else:
        show("", f"wrote {options.sample}")
        show_next("prnas search " + shlex.join(["--data", config.name]))


def _config(name: str, options: DataOptions) -> DataConfig:
    # As in the recipes: a flipped digit is no digit, and a shift by 4 of 8 pixels hides half of it.
    flip, padding = (False, 1) if name == "digits" else (True, 4)
    settings = {
        "name": name,
        "root": None if options.root is None else str(options.root),
        "image_size": options.image_size,
        "flip": flip if options.flip is None else options.flip,
        "crop_padding": padding if options.crop_padding is None else options.crop_padding,
        "cutout": options.cutout,
        "broken": "skip" if options.skip_broken else "refuse",
    }
    return validated(TypeAdapter(DataConfig), settings, "data")


def _entry(name: str, about: catalog.About, root: Path) -> dict[str, Any]:
    spec = catalog.SPECS.get(name)
    if spec is None:
        where = "in the package"
    else:
        folder = catalog.find(spec, root)
        where = "downloaded on first use" if folder is None else str(folder)
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


def _summary(config: DataConfig, loaded: Any, notes: list[str]) -> dict[str, Any]:
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


def _show(config: DataConfig, summary: dict[str, Any]) -> None:
    classes: list[dict[str, Any]] = summary["classes"]
    counts = [row["train"] for row in classes]
    few, many = min(counts), max(counts)
    balance = f"{few:,}" if few == many else f"{few:,} to {many:,}"
    pairs = [
        ("images", f"{summary['train']:,} for training, {summary['test']:,} for testing"),
        ("size", _size(summary["shape"])),
        ("classes", f"{len(classes)}, of {balance} training images each"),
        ("mean", _numbers(summary["mean"])),
        ("std", _numbers(summary["std"])),
        ("storage", _storage(summary)),
    ]
    about = catalog.ABOUT.get(config.name)
    if about is not None:
        pairs += [("source", about.source), ("licence", about.licence)]
    pairs += [("note", note) for note in summary["notes"]]
    show_heading(config.name)
    show(facts(pairs))
    if len(classes) <= _MOST_CLASSES:
        rows = [[row["name"], f"{row['train']:,}", f"{row['test']:,}"] for row in classes]
        show("", table(["class", "train", "test"], rows, right=(1, 2)))


def _numbers(values: list[float]) -> str:
    return ", ".join(f"{value:.4f}" for value in values)


def _storage(summary: dict[str, Any]) -> str:
    channels, height, width = summary["shape"]
    size = (summary["train"] + summary["test"]) * channels * height * width / 1e6
    where = "in memory" if summary["storage"] == "memory" else "read as they are needed"
    return f"{where} ({size:,.1f} MB)"


def _check_target(path: Path) -> None:
    """Refuse a wrong file before the images are loaded, which may take a while."""
    if path.suffix.lower() != ".png":
        raise UserError(f"--sample needs a name that ends in .png, got '{path}'")
    if path.is_dir():
        raise UserError(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise UserError(f"cannot write {path}: there is no folder {path.parent}")


def _write_sample(
    config: DataConfig, loaded: Any, summary: dict[str, Any], path: Path, seed: int
) -> None:
    from prnas.data.augment import Augmentation
    from prnas.data.contact_sheet import contact_sheet
    from prnas.data.dataset import Normalization

    values = Normalization(tuple(summary["mean"]), tuple(summary["std"]))
    augmentation = Augmentation(config.flip, config.crop_padding, config.cutout, values)
    with cannot(f"write {path}"):
        write_output(path, contact_sheet(loaded, augmentation, seed))

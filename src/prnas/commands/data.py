"""`prnas data`: the sets of images, the content of one, and samples of its augmentation."""

import shlex
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from prnas.commands.draw import check_target
from prnas.commands.options import DataOptions
from prnas.config import recipes
from prnas.config.overrides import typed_overrides
from prnas.config.retrain import RetrainDataConfig
from prnas.config.sections import ImagesConfig, RunConfig
from prnas.config.undecided import Draft
from prnas.data import catalog
from prnas.io.atomic import write_output
from prnas.io.errors import UserError, cannot
from prnas.io.paths import is_folder
from prnas.runs import named
from prnas.runs.names import CONFIG
from prnas.terminal.output import facts, show, show_heading, show_json, show_next, show_prose, table

_MOST_CLASSES = 20  # More classes are counted, not listed.


def run(name: str | None, options: DataOptions) -> None:
    if name is not None or options.recipe is not None:
        _show_set(name, options)
        return
    if options.sample is not None:
        raise UserError("--sample needs the name of a set, e.g. prnas data digits --sample out.png")
    folder = options.root or catalog.default_root()
    sets = catalog.ABOUT
    where = {name: _where(name, folder) for name in sets}
    if options.as_json:
        show_json([{"name": name, **asdict(sets[name]), "where": where[name]} for name in sets])
        return
    show_heading("Sets of images")
    rows = [
        [name, f"{about.train:,}", f"{about.test:,}", _size(about.shape), str(about.classes)]
        for name, about in sets.items()
    ]
    headings = ["name", "train", "test", "size", "classes", "where"]
    show(table(headings, [[*row, where[row[0]]] for row in rows], right=(1, 2, 4)), "")
    pairs = [
        (name, f"{about.what}, from {about.source}; licence: {about.licence}")
        for name, about in sets.items()
    ]
    pairs += [
        ("folder:PATH", "your images, a folder for each class; or train and test folders of these"),
        ("npz:PATH", "your arrays x_train and y_train and, if you have them, x_test and y_test"),
    ]
    show(facts(pairs), "")
    show_prose(
        f"Downloads go to {folder}. Set {catalog.ROOT_VARIABLE}, or data.root of a search, to use "
        "another folder, or files that you have."
    )
    show_next("prnas data digits --sample digits.png")


def _where(name: str, root: Path) -> str:
    if name not in catalog.SPECS:
        return "in the package"
    folder = catalog.find(catalog.SPECS[name], root)
    return "downloaded on first use" if folder is None else str(folder)


def _show_set(name: str | None, options: DataOptions) -> None:
    """Show what is in a set, and draw a contact sheet of augmented samples for `--sample`."""
    if name is not None:
        catalog.check_name(name)
    if options.sample is not None:
        check_target("--sample", options.sample, [".png"])
    settled = named.settle(_draft(name, options))
    config = settled.config.images
    import torch

    from prnas.data.dataset import load, normalization

    notes: list[str] = []
    with closing(load(config, torch.device("cpu"), notes.append)) as data:
        values = normalization(data.train)
        summary = _summary(config, data, values) | {"notes": notes}
        summary["recipe"] = options.recipe or named.default_search(name)
        if options.sample is not None:
            _write_sample(config, data, values, options.sample, options.seed)
    if options.as_json:
        show_json(summary)
        return
    _show(config, summary)
    if options.sample is None:
        show_next("prnas data " + shlex.join([config.name, "--sample", "sample.png"]))
    else:
        show("", f"wrote {options.sample}")
        show_next(
            "prnas search " + shlex.join([*_recipe_of_search(options), "--data", config.name])
        )


def _recipe_of_search(options: DataOptions) -> list[str]:
    """The recipe's name as an argument of `prnas search`; nothing if the default one fits."""
    shipped = options.recipe in recipes.names("search")
    return [options.recipe] if options.recipe is not None and shipped else []


def _draft(name: str | None, options: DataOptions) -> Draft[RunConfig]:
    """The config that a recipe, a file or a run and the options give for the images."""
    recipe = options.recipe or named.default_search(name)
    if is_folder(recipe) and recipe not in recipes.names():
        recipe = str(Path(recipe, CONFIG))
    typed = {
        "data.name": name,
        "data.root": None if options.root is None else str(options.root),
        "data.image_size": options.image_size,
        "data.flip": options.flip,
        "data.crop_padding": options.crop_padding,
        "data.cutout": options.cutout,
        "data.broken": "skip" if options.skip_broken else None,
    }
    return named.draft_of(recipe, [*options.overrides, *typed_overrides(typed)], RunConfig)


def _size(shape: Sequence[int]) -> str:
    channels, height, width = shape
    kinds = {1: "grey", 3: "colour"}
    return f"{width}x{height} {kinds.get(channels, f'{channels} channels')}"


def _summary(config: ImagesConfig, data: Any, values: Any) -> dict[str, Any]:
    from prnas.data.dataset import InMemory

    counts = [
        split.labels.bincount(minlength=data.num_classes).tolist()
        for split in (data.train, data.test)
    ]
    return {
        "name": config.name,
        "train": len(data.train),
        "test": len(data.test),
        "shape": list(data.shape),
        "classes": [
            {"name": name, "train": train, "test": test}
            for name, train, test in zip(data.class_names, *counts, strict=True)
        ],
        "mean": list(values.mean),
        "std": list(values.std),
        "augmentation": {key: getattr(config, key) for key in _augmentation_keys(config)},
        "storage": "memory" if isinstance(data.train, InMemory) else "stream",
    }


def _augmentation_keys(config: ImagesConfig) -> list[str]:
    keys = ["flip", "crop_padding", "cutout"]
    if isinstance(config, RetrainDataConfig):
        keys += [key for key in ("rand_augment", "color_jitter") if getattr(config, key)]
    return keys


def _show(config: ImagesConfig, summary: dict[str, Any]) -> None:
    classes: list[dict[str, Any]] = summary["classes"]
    counts = [row["train"] for row in classes]
    few, many = min(counts), max(counts)
    channels, height, width = summary["shape"]
    size = (summary["train"] + summary["test"]) * channels * height * width / 1e6
    where = "in memory" if summary["storage"] == "memory" else "read as they are needed"
    balance = f"{few:,}" if few == many else f"{few:,} to {many:,}"
    pairs = [
        ("images", f"{summary['train']:,} for training, {summary['test']:,} for testing"),
        ("size", _size(summary["shape"])),
        ("classes", f"{len(classes)}, of {balance} training images each"),
        *[(name, ", ".join(f"{x:.4f}" for x in summary[name])) for name in ("mean", "std")],
        ("storage", f"{where} ({size:,.1f} MB)"),
        ("augment", f"{_variants(config)} (as by {summary['recipe']})"),
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


def _variants(config: ImagesConfig) -> str:
    changes = ["flipped" if config.flip else "not flipped"]
    changes.append(
        f"shifted by up to {config.crop_padding}" if config.crop_padding else "not shifted"
    )
    if config.cutout:
        changes.append(f"a square of {config.cutout} cut out")
    if isinstance(config, RetrainDataConfig) and config.rand_augment:
        changes.append(f"RandAugment {config.rand_augment} of magnitude {config.rand_magnitude}")
    if isinstance(config, RetrainDataConfig) and config.color_jitter:
        changes.append(f"colours by up to {config.color_jitter:.0%}")
    return ", ".join(changes)


def _write_sample(config: ImagesConfig, data: Any, values: Any, path: Path, seed: int) -> None:
    from prnas.data.augment import Augmentation
    from prnas.data.contact_sheet import contact_sheet

    augmentation = Augmentation.of(config, values)
    with cannot(f"write {path}"):
        write_output(path, contact_sheet(data, augmentation, seed))

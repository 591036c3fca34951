"""Run folders that nobody trained, for what reads them: reports, figures, the live view."""

import json
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

from prnas.io.yaml_files import dump_yaml
from prnas.runs.record_lines import to_line
from prnas.runs.record_versions import header_line
from prnas.runs.records import EpochRecord, GenotypeRecord, Record, Score, TrainedRecord
from prnas.space import zoo
from prnas.space.shape import DARTS
from tests.support.settings import GENOTYPE201
from tests.support.synthetic_search import events, quick

NAMES = ("pr-darts-dl2", "pr-darts-dl1", "darts-v2", "darts-v1")
SESSION = {
    "started": "2026-11-16T01:48:32+00:00",
    "command": ["prnas", "search", "quick", "--name", "my run"],
    "prnas": "0.1.0",
    "python": "3.11.7",
    "packages": {"torch": "2.13.0"},
    "processor": "x86_64",
    "threads": 2,
    "gpus": [],
    "git": {"commit": "0123456789abcdef", "clean": True},
}
HOSTILE = (
    "<script>document.body.dataset.hacked=1</script><img src=x onerror=alert(1)>\"'`&amp;"
    "\u202eesrever\u2066 \u200f\u0007"
)
LONG = "long " * 2000  # ten thousand characters


def search_records(
    *overrides: str, cycles: int | None = None, end: bool = True, genotype: str = NAMES[0]
) -> list[Record]:
    """Those of a whole search, or of its first cycles."""
    records: list[Record] = [
        event[0]
        for name, event in events(quick(*overrides), None, cycles)
        if name in ("on_batch", "on_epoch", "on_cycle")
    ]
    if end and cycles is None:
        of_darts = quick(*overrides).network.shape == DARTS
        result = zoo.get(genotype) if of_darts else GENOTYPE201
        records.append(GenotypeRecord(genotype=result.to_json()))
    return records


def write_run(folder: Path, config: Any, records: Iterable[Record]) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(dump_yaml(config), encoding="utf-8")
    (folder / "records.jsonl").write_text(
        header_line() + "".join(map(to_line, records)), encoding="utf-8"
    )
    (folder / "environment.json").write_text(json.dumps({"sessions": [SESSION]}))
    return folder


def write_search(
    folder: Path, *overrides: str, cycles: int | None = None, end: bool = True, seed: int = 0
) -> Path:
    """A run's folder as a search leaves it; one of the published cells is its genotype."""
    config = quick(*overrides, f"seed={seed}")
    genotype = NAMES[seed % len(NAMES)]
    records = search_records(*overrides, cycles=cycles, end=end, genotype=genotype)
    return write_run(folder, config.to_data(), records)


def training_records(
    seed: int = 0,
    epochs: int = 30,
    classes: Iterable[str] = ("cat", "dog", "ship"),
    end: bool = True,
) -> list[Record]:
    generator = Random(seed)
    names = list(classes)
    records: list[Record] = []
    for epoch in range(epochs):
        done = (epoch + 1) / epochs
        accuracy = 0.4 + 0.5 * done + generator.uniform(-0.02, 0.02)
        records.append(
            EpochRecord(
                type="training",
                epoch=epoch + 1,
                total_epoch=epoch + 1,
                steps=10,
                lr=0.025 * (1 - done),
                drop_path=0.3 * done,
                batch=96,
                scores={
                    "training": Score(loss=2 - 1.5 * done, accuracy=accuracy - 0.05, images=1000),
                    "test": Score(loss=1.9 - 1.3 * done, accuracy=accuracy, images=300),
                },
                seconds=12.5,
                images_per_second=80.0,
                memory=9e8,
                seconds_for={
                    "data": 1,
                    "training": 9,
                    "testing": 1,
                    "saving": 1,
                    "other": 0.5,
                },
            )
        )
    if end:
        confusion = [
            [90 if i == j else generator.randrange(6) for j, _ in enumerate(names)]
            for i, _ in enumerate(names)
        ]
        records.append(
            TrainedRecord(
                test_error=0.1 + generator.uniform(-0.01, 0.01),
                averaged_epochs=5,
                test=Score(loss=0.6, accuracy=0.9, images=300),
                parameters=4_018_000,
                macs=650_000_000,
                class_names=names,
                confusion=confusion,
                seconds=400.0,
            )
        )
    return records


def training_config(seed: int = 0, epochs: int = 30) -> dict[str, Any]:
    return {
        "task": "retrain",
        "seed": seed,
        "genotype": zoo.get("pr-darts-dl2").to_json(),
        "network": {"cells": 20, "channels": 36},
        "training": {"epochs": epochs},
        "data": {"name": "cifar10"},
    }


def write_training(folder: Path, seed: int = 0, epochs: int = 30, end: bool = True) -> Path:
    return write_run(folder, training_config(seed, epochs), training_records(seed, epochs, end=end))

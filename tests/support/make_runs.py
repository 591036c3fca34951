"""Makes the run folders of a format version, which later releases must be able to read.

`python -m tests.support.make_runs tests/runs/format-N` writes them with the present code. It is for
a new version of the formats only: folders that are there already stay as they are.
"""

import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.retraining import api as retraining
from prnas.retraining import seeds
from prnas.runs.run import Stopped
from prnas.searching import api as searching
from tests.support.arithmetic import arithmetic
from tests.support.watching import Watch

COMMON: dict[str, Any] = {
    "seed": 0,
    "batch": {"min": 8, "multiple": 4, "max": 16, "every": 2},
    "checkpoints": {"every_minutes": 1000.0, "keep": 1},
    "compute": {"accelerator": "cpu", "threads": 1},
}
SEARCH: dict[str, Any] = {
    **COMMON,
    "description": "A small search, for tests of later releases",
    "schedule": {
        "cycles": [
            {"epochs": 2, "grace_epochs": 1, "morphisms": 2, "candidates": 4},
            {"epochs": 2, "grace_epochs": 1, "morphisms": 0, "candidates": 1},
        ]
    },
    "network": {"cells": 3, "channels": 2, "nodes": 2},
    "data": {"name": "digits", "images": 128, "flip": False, "crop_padding": 1},
}
TRAINING: dict[str, Any] = {
    **COMMON,
    "task": "retrain",
    "description": "A small training, for tests of later releases",
    "network": {"cells": 3, "channels": 2, "auxiliary_weight": 0.0, "drop_path": 0.1},
    "training": {"epochs": 5, "warmup_epochs": 1, "label_smoothing": 0.1, "average_decay": 0.7},
    "data": {"name": "digits", "images": 240, "flip": False, "crop_padding": 1, "cutout": 2},
}
SEARCH_STEP, TRAINING_STEP = 16, 37  # the steps after which a run is stopped, within an epoch


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def make(folder: Path) -> None:
    """A finished search, the same one stopped; a finished training, and the first of two seeds."""
    folder.mkdir(parents=True)
    search = SearchConfig.from_data(SEARCH)
    sys.argv = ["prnas", "search", "search.yaml"]
    result = searching.start(search, runs=folder, name="search-finished")
    with suppress(Stopped):
        searching.start(
            search,
            runs=folder,
            name="search-unfinished",
            callbacks=[Watch(SEARCH_STEP, interrupt)],
        )
    training = RetrainConfig.from_data({**TRAINING, "genotype": result.genotype.to_json()})
    sys.argv = ["prnas", "retrain", "runs/search", "training.yaml"]
    retraining.start(training, runs=folder, name="training-finished")
    sys.argv += ["--seeds", "2"]
    with suppress(Stopped):
        seeds.start_seeds(
            training,
            2,
            runs=folder,
            name="seeds-unfinished",
            watchers=lambda number, of: [Watch(TRAINING_STEP, interrupt)],
        )
    for path in folder.rglob("environment.json"):
        path.write_text(_impersonal(path.read_text()))
    for lock in folder.rglob(".lock"):
        lock.unlink()
    (folder / "arithmetic.json").write_text(json.dumps(arithmetic(), indent=1) + "\n")


def _impersonal(environment: str) -> str:
    """An environment file without what is only true of the machine that wrote it."""
    data = json.loads(environment)
    for session in data["sessions"]:
        session |= {"platform": "Linux", "processor": "x86_64", "cpus": 2, "git": None}
        session["started"] = "2026-01-01T00:00:00+00:00"
    return json.dumps(data, indent=1) + "\n"


if __name__ == "__main__":
    make(Path(sys.argv[1]))

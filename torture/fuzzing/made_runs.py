"""The smallest runs that there are: finished ones, and some that were stopped shortly before."""

import os
import signal
from pathlib import Path

from prnas.retraining import api as retrain
from prnas.runs.events import Callback, StepEvent
from prnas.runs.session import Stopped
from prnas.searching import api as search
from tests.support.settings import small_config, small_training, write_images

_NETWORK = {"cells": 3, "channels": 2}


class _Stop(Callback):
    def on_step(self, step: StepEvent) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


def make_search(folder: Path, images: Path, stopped: bool) -> Path:
    cycle = {"epochs": 1, "grace_epochs": 0, "morphisms": 1, "candidates": 2}
    last = {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1}
    config = small_config(
        images,
        schedule={"cycles": [last] if stopped else [cycle, last]},
        network={**_NETWORK, "nodes": 1},
    )
    callbacks = [_Stop()] if stopped else []
    try:
        search.start(config, runs=folder.parent, name=folder.name, callbacks=callbacks)
    except Stopped:
        assert stopped
    return folder


def make_training(folder: Path, images: Path, stopped: bool) -> Path:
    config = small_training(
        images,
        network=_NETWORK,
        training={"epochs": 1, "warmup_epochs": 0, "average_decay": 0.5},
        batch={"min": 8, "multiple": 4, "max": 12},
    )
    callbacks = [_Stop()] if stopped else []
    try:
        retrain.start(config, runs=folder.parent, name=folder.name, callbacks=callbacks)
    except Stopped:
        assert stopped
    return folder


def make_runs(parent: Path) -> dict[str, list[Path]]:
    """Finished and stopped runs, by the command that goes on with them."""
    images = write_images(parent / "images.npz", number=24, size=8)
    return {
        "search": [
            make_search(parent / "searched", images, stopped=False),
            make_search(parent / "searching", images, stopped=True),
        ],
        "retrain": [
            make_training(parent / "trained", images, stopped=False),
            make_training(parent / "training", images, stopped=True),
        ],
    }

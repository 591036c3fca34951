"""A small fit: real runs on tiny images, with times that are said, not measured."""

from pathlib import Path
from typing import Any

from prnas.config.choosing import ImageFacts
from prnas.data.dataset import DataSet
from prnas.fitting.configs import PLAIN_NETWORK, SEARCHED, ZOO, Contender
from prnas.fitting.folder import FitFolder, FitState
from prnas.fitting.measure import Meter
from prnas.fitting.page import write_fit_page
from prnas.fitting.plan import Plan, Rung, SearchPlan, SearchTimes, StepTimes, Task, TrainingPlan
from prnas.fitting.request import Request
from prnas.fitting.verdict import Trained, compare, sentences
from tests.support.made_data import images
from tests.support.settings import SMALL_GENOTYPE, small_config

NAMES = (SEARCHED, ZOO, PLAIN_NETWORK)
TIMES = StepTimes(0.4, 0.0, 0.0, 0.0)
NASTY = '<img src=x onerror="document.title=1">'  # A name that a page must not obey.
IMAGES = 36  # To train with: 12 of each class.
CYCLES = [
    {"epochs": 1, "grace_epochs": 0, "morphisms": 1, "candidates": 3},
    {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1},
]


class SaidMeter(Meter):
    """Says the same numbers at all times; `measures`: whether it may be asked for a network's."""

    def __init__(self, measures: bool = True) -> None:
        super().__init__()
        self.measures = measures

    def elapsed(self) -> float:
        return 0.0

    def spent_on(self, result: Any, planned: float) -> float:
        return planned

    def training(self, config: Any, data: Any) -> StepTimes:
        assert self.measures, "what was measured once is not measured again"
        return TIMES

    def search(self, config: Any, data: Any) -> SearchTimes:
        return SearchTimes(0.2, 0.0, 0.0, 0.0)

    def latency(self, model: Any, data: Any, threads: int | None) -> float:
        return 1.5


def made_state(images: Path) -> FitState:
    """The plan of a fit on `IMAGES` images of `write_images`; its search is a small one."""
    facts = ImageFacts((12, 12, 12), (8, 8, 8), 3, ("0", "1", "2"))
    task = Task(facts, 12, NAMES)
    small = {"kind": "cells", "cells": 3, "channels": 4}
    plain = {"stem": "cifar", "output": "concat", "auxiliary_weight": 0.0, "drop_path": 0.0}
    plain |= {"kind": "resnet", "cells": 3, "channels": 4}
    contenders = {
        SEARCHED: Contender(SEARCHED, "found by the search", None, small),
        ZOO: Contender(ZOO, "a small cell, published", SMALL_GENOTYPE, small),
        PLAIN_NETWORK: Contender(PLAIN_NETWORK, "resnet8, plain, 4 channels", None, plain),
    }
    plan = Plan(
        Rung(8, (3, 4), (3, 4)),
        SearchPlan(IMAGES, 2, 10.0),
        {name: TrainingPlan(2, 5.0) for name in NAMES},
        1.0,
        20.0,
        (("size", "8 x 8 pixels: their own size"),),
    )
    return FitState(
        Request(f"npz:{images}", 1.0, seed=1, threads=1),
        ("36 images & <b>3</b> classes.",),
        task,
        {ZOO: TIMES, PLAIN_NETWORK: TIMES},
        plan,
        small_config(images, schedule={"cycles": CYCLES}).to_data(),
        {name: contender.to_json() for name, contender in contenders.items()},
    )


def made_folder(images: Path, runs: Path, name: str) -> Path:
    """The folder of a fit that has a plan, and nothing else yet."""
    folder = FitFolder.create(runs, name, 1)
    folder.write(made_state(images))
    folder.close()
    return folder.path


def made_results() -> dict[str, Any]:
    found = Trained("found", "found by the search", 9, 9, 9, 9, 9.0, 0.9, 0.3, 50, 9, 12, 1.0)
    rows: list[dict[str, Any]] = []
    for name in NAMES:
        row = dict(vars(found)) | {"name": name, "label": f"{name} {NASTY}"}
        rows.append(row | {"accuracy": 0.75, "interval_95": [0.47, 0.91]})
    compared = compare([True] * 9 + [False] * 3, {"zoo": [True] * 12, "plain": [False] * 12})
    wrong = {"index": 1, "name": f"cat/{NASTY}\u202e.png", "class": 0, "taken_for": 1}
    return {
        "best": "found",
        "search": {
            "epochs": 20,
            "cycles": 9,
            "cells": {"normal": "3 skip, 5 conv 3x3", "reduction": NASTY},
            "how_sure": "unsure: 9 of 28 decisions were beyond chance, 1 of the last 4.",
        },
        "networks": rows,
        "compared": [vars(each) for each in compared],
        "sentences": sentences([found], found, []),
        "class_names": [NASTY, "a very long name of a class " * 4, "moose"],
        "confusion": [[2, 1, 0], [0, 4, 0], [1, 1, 3]],
        "calibration": {
            "ece": 0.05,
            "bins": [{"low": 0.8, "high": 0.9, "images": 12, "confidence": 0.8, "accuracy": 0.75}],
        },
        "wrong": [{**wrong, "confidence": 0.8, "true_probability": 0.1}],
    }


def write_made_fit(path: Path) -> None:
    data = DataSet("made", images(9), images(12), ("a", "b", "c"))
    write_fit_page(path, made_state(Path("x.npz")), made_results(), data, ["net.py"])

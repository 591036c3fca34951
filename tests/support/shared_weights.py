"""Small searches whose searchers choose among the cells of a supernet."""

from pathlib import Path

from prnas.config.search import SearchConfig
from prnas.runs.records import EvaluationRecord
from tests.support.settings import small_config
from tests.support.watching import Watch

CYCLE = {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1}
ENAS_CYCLE = {"epochs": 3, "grace_epochs": 1, "morphisms": 0, "candidates": 1}


def shared(images: Path, method: str = "random", shape: str = "nasbench201") -> SearchConfig:
    network = {"cells": 3, "channels": 4, "shape": shape}
    return small_config(
        images,
        space="nasbench201" if shape == "nasbench201" else "darts-like",
        schedule={"cycles": [CYCLE]},
        architecture={"step": "sampled", "scoring": "paths"},
        network={**network, "nodes": 3} if shape == "nasbench201" else {**network, "nodes": 2},
        validation={"batch": 16},
        searcher={
            "method": method,
            "budget": {"evaluations": 12},
            "supernet": {"batches": 1, "finalists": 4},
            "evolution": {"population": 4, "sample": 2},
        },
    )


class At(Watch):
    """Acts after so many evaluations."""

    def on_evaluation(self, record: EvaluationRecord) -> None:
        self.events.append(record.stage)
        if len([one for one in self.events if one in ("search", "final")]) == self.at:
            self.act()


def enas(images: Path, *overrides: str) -> SearchConfig:
    return small_config(
        images,
        space="nasbench201",
        schedule={"cycles": [ENAS_CYCLE]},
        architecture={"step": "enas", "scoring": "paths"},
        network={"cells": 3, "channels": 4, "nodes": 3, "shape": "nasbench201"},
        validation={"batch": 16},
        searcher={
            "method": "controller",
            "budget": {"evaluations": 6},
            "controller": {"updates": 3, "batch": 4, "hidden": 6},
            "supernet": {"batches": 1, "finalists": 2},
        },
    ).override(overrides)

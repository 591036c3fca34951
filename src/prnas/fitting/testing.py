"""All trained networks on the held-out images, and what is to be said of the best one."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from prnas.data.dataset import DataSet
from prnas.fitting import verdict
from prnas.fitting.configs import SEARCHED, Contender
from prnas.fitting.request import Request
from prnas.fitting.verdict import Trained
from prnas.models.inference import Forward, evaluating
from prnas.models.metrics import confusion_matrix
from prnas.models.model import Model, load
from prnas.runs import certainty
from prnas.runs.events import RetrainResult, SearchResult
from prnas.space.notebook import in_short

BATCH = 128
MOST_WRONG = 24  # Images that the page shows.


@dataclass(frozen=True)
class Outcome:
    """A network's probabilities for all test images."""

    model: Model
    probabilities: Tensor

    @property
    def predicted(self) -> Tensor:
        return self.probabilities.argmax(1)

    @property
    def confidences(self) -> Tensor:
        return self.probabilities.max(1).values


def outcome_of(folder: Path, data: DataSet) -> Outcome:
    model = load(folder)
    forward = Forward(model, BATCH)
    pieces: list[Tensor] = []
    with evaluating(model):
        for _, pixels in data.test.batches(torch.arange(len(data.test)), BATCH):
            pieces.append(forward(pixels).softmax(1))
    return Outcome(model, torch.cat(pieces))


def tested_of(
    contender: Contender,
    result: RetrainResult,
    outcome: Outcome,
    data: DataSet,
    latency: float,
    request: Request,
) -> Trained:
    assert result.validation is not None
    return Trained(
        name=contender.name,
        label=contender.label,
        parameters=result.parameters,
        macs=result.macs,
        epochs=len(result.epochs),
        kept_epoch=result.kept_epoch,
        seconds=result.seconds,
        validation=result.validation.accuracy,
        validation_loss=result.validation.loss,
        validation_images=result.validation.images,
        correct=int((outcome.predicted == data.test.labels).sum()),
        images=len(data.test),
        latency=latency,
        within_limits=request.allows(result.parameters, result.macs, latency),
    )


def search_of(result: SearchResult) -> dict[str, Any]:
    """What the page tells of the search."""
    cells = {role: in_short(result.genotype.cell(role)) for role in result.genotype.roles}
    return {
        "epochs": len(result.epochs),
        "cycles": len(result.cycles),
        "cells": cells,
        "how_sure": certainty.verdict(result.cycles, advise=False),
    }


def results_of(
    search: SearchResult,
    tested: Mapping[str, Trained],
    outcomes: Mapping[str, Outcome],
    data: DataSet,
    names: list[str],
) -> dict[str, Any]:
    """Everything that the summary, the page and the model card tell, as plain data."""
    labels = data.test.labels
    right = {name: (outcome.predicted == labels).tolist() for name, outcome in outcomes.items()}
    others = {name: each for name, each in right.items() if name != SEARCHED}
    compared = verdict.compare(right[SEARCHED], others) if SEARCHED in right else []
    best = verdict.best_of(list(tested.values()))
    chosen = outcomes[best.name]
    bins, error = verdict.calibration(chosen.confidences.tolist(), right[best.name])
    confusion = confusion_matrix(labels, chosen.predicted, data.num_classes)
    return {
        "best": best.name,
        "search": search_of(search),
        "networks": [
            asdict(trained) | {"accuracy": trained.accuracy, "interval_95": list(trained.interval)}
            for trained in tested.values()
        ],
        "compared": [asdict(each) for each in compared],
        "sentences": verdict.sentences(list(tested.values()), best, compared),
        "class_names": list(data.class_names),
        "confusion": confusion.tolist(),
        "calibration": {"ece": error, "bins": [asdict(bin_) for bin_ in bins]},
        "wrong": _wrong(chosen, labels, names),
    }


def _wrong(outcome: Outcome, labels: Tensor, names: list[str]) -> list[dict[str, Any]]:
    """The mistakes that it was surest of."""
    predicted, confidences = outcome.predicted, outcome.confidences
    indices = (predicted != labels).nonzero().flatten().tolist()
    indices.sort(key=lambda index: (-float(confidences[index]), index))
    return [
        {
            "index": index,
            "name": names[index],
            "class": int(labels[index]),
            "taken_for": int(predicted[index]),
            "confidence": float(confidences[index]),
            "true_probability": float(outcome.probabilities[index, labels[index]]),
        }
        for index in indices[:MOST_WRONG]
    ]

"""The training of a final network for the page: epochs as columns, test error, confusion."""

from typing import Any

from prnas.io.errors import FormatError
from prnas.report.picture_data import cell_picture
from prnas.report.plain_data import pick, rounded, text_at, whole_at
from prnas.report.view import Facts, RunInfo, View, seed_facts
from prnas.runs.records import EpochRecord, Record, TrainedRecord
from prnas.space.genotype import ROLES, Genotype

COLUMNS = (
    *("lr", "drop_path", "batch", "seconds", "speed", "memory"),
    *("training_accuracy", "training_loss", "test_accuracy", "test_loss"),
)
MOST_CLASSES = 120  # whose confusion is drawn as a matrix; of more, only the worst pairs are told
WORST_PAIRS = 12
LONGEST_NAME = 200  # of a class: a matrix cannot show more


class TrainingView(View):
    def __init__(self, info: RunInfo) -> None:
        super().__init__(info, COLUMNS)
        self.trained: TrainedRecord | None = None
        self.genotype = _genotype(pick(info.config, "genotype"))

    @property
    def ended(self) -> bool:
        return self.trained is not None

    def add(self, record: Record) -> None:
        match record:
            case EpochRecord(type="training"):
                self._add_epoch(record)
            case TrainedRecord():
                self.trained = record
            case _:
                pass

    def data(self) -> dict[str, Any]:
        info, trained = self.info, self.trained
        # Its genotype is in its config: the run is its own first argument.
        repeat = f"prnas retrain {info.quoted} {info.file('config.yaml')}"
        commands = self._commands(
            ("Repeat the training", repeat),
            "prnas retrain",
            [
                ("Evaluate the model", f"prnas evaluate {info.quoted}"),
                ("Export the model", f"prnas export {info.quoted} -o model.onnx"),
            ],
        )
        test = self._latest.get("test")
        error = 1 - test.accuracy if test else None
        return {
            **self.common("training", self._facts(), commands),
            "num_epochs": whole_at(info.config, "training.epochs"),
            "seconds": rounded(trained.seconds if trained else self._seconds),
            "memory": rounded(self._memory),
            "test_error": rounded(trained.test_error if trained else error),
            "averaged_epochs": trained.averaged_epochs if trained else None,
            "network": self._network(),
            "epochs": self._epochs.data(),
            "confusion": confusion(trained) if trained else None,
            "genotype": self._pictures(),
        }

    def _network(self) -> dict[str, Any] | None:
        if self.trained is None:
            return None
        config = self.info.config
        return {
            "parameters": self.trained.parameters,
            "macs": self.trained.macs,
            "channels": whole_at(config, "network.channels"),
            "cells": whole_at(config, "network.cells"),
            "classes": len(self.trained.class_names),
        }

    def _pictures(self) -> dict[str, Any] | None:
        if self.genotype is None:
            return None
        return {"pictures": {role: cell_picture(self.genotype.cell(role)) for role in ROLES}}

    def _facts(self) -> Facts:
        config = self.info.config
        facts: Facts = []
        name = text_at(config, "data.name")
        if name:
            facts.append(("Data", name))
        genotype = text_at(config, "genotype")
        if genotype:
            facts.append(("Genotype", genotype))
        cells, channels = whole_at(config, "network.cells"), whole_at(config, "network.channels")
        if cells and channels:
            facts.append(("Network", f"{cells} cells, {channels} channels at first"))
        return facts + seed_facts(self.info)


def confusion(trained: TrainedRecord) -> dict[str, Any] | None:
    """The matrix (unless it is huge) and the pairs of classes that are confused most."""
    counts, names = trained.confusion, trained.class_names
    size = len(names)
    if not size or len(counts) != size or any(len(row) != size for row in counts):
        return None
    pairs = [
        (count, place, taken)
        for place, row in enumerate(counts)
        for taken, count in enumerate(row)
        if count > 0 and place != taken
    ]
    worst = sorted(pairs, key=lambda pair: (-pair[0], pair[1:]))[:WORST_PAIRS]
    drawn = size <= MOST_CLASSES
    used = range(size) if drawn else sorted({place for pair in worst for place in pair[1:]})
    return {
        "names": {str(place): _clipped(names[place]) for place in used},
        "size": size,
        "counts": counts if drawn else None,
        "worst": [[place, taken, count, sum(counts[place])] for count, place, taken in worst],
    }


def _clipped(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def _genotype(data: Any) -> Genotype | None:
    try:
        return Genotype.from_json(data) if isinstance(data, dict) else None
    except FormatError:
        return None  # another way to say it; the page does without a drawing

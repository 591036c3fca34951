"""The training of a final network for the page: its test error, confusion and head."""

from collections.abc import Sequence
from typing import Any

from prnas.io.errors import FormatError
from prnas.models.confusions import confusions
from prnas.report.plain_data import clipped, pick, rounded, text_at, whole_at
from prnas.report.view import RunInfo, View, cell_pictures, facts_of, network_phrase
from prnas.runs.records import Record, TrainedRecord
from prnas.space.genotype import Genotype
from prnas.space.resnet import RESNET

MOST_CLASSES = 120  # a larger confusion matrix is not drawn: only its worst pairs are shown
WORST_PAIRS = 12
LONGEST_NAME = 200  # characters of a class's name: a matrix cannot show more


class TrainingView(View):
    kind, result, result_name = "training", "test_error", "Test error"

    def __init__(self, info: RunInfo) -> None:
        super().__init__(info)
        self.trained: TrainedRecord | None = None
        self.genotype = _genotype(pick(info.config, "genotype"))
        self.planned = whole_at(info.config, "training.epochs") or 0

    def add(self, record: Record) -> None:
        if isinstance(record, TrainedRecord):
            self.trained, self.ended = record, True
        else:
            self.epochs.add(record)

    def data(self) -> dict[str, Any]:
        info, config, trained = self.info, self.info.config, self.trained
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
        facts = facts_of(
            ("Data", text_at(config, "data.name")),
            ("Genotype", text_at(config, "genotype")),
            ("Network", network_phrase(config, "{} {}, {} channels at first")),
            ("Started from", text_at(config, "network.start_from")),
        )
        test = self.epochs.scores.get("test")
        error = 1 - test.accuracy if test else None
        return {
            **self.common(facts, commands),
            **({"seconds": rounded(trained.seconds)} if trained else {}),
            "test_error": rounded(trained.test_error if trained else error),
            "averaged_epochs": trained.averaged_epochs if trained else None,
            **({"kept_epoch": trained.kept_epoch} if trained and trained.kept_epoch else {}),
            "network": self._network(),
            "confusion": confusion_of([trained]) if trained else None,
            "genotype": {"pictures": cell_pictures(self.genotype)} if self.genotype else None,
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
            **({"blocks": True} if text_at(config, "network.kind") == RESNET else {}),
            "classes": len(self.trained.class_names),
        }


def _genotype(data: Any) -> Genotype | None:
    try:
        return Genotype.from_json(data) if isinstance(data, dict) else None
    except FormatError:
        return None  # another way to say it; the page does without a drawing


def confusion_of(trained: Sequence[TrainedRecord]) -> dict[str, Any] | None:
    """The matrices of trainings on the same classes, added up (unless that is huge), and the pairs
    of classes that are confused most; nothing of trainings on different classes.
    """
    names = trained[0].class_names
    size = len(names)
    if not all(is_sound(record) and record.class_names == names for record in trained):
        return None
    rows = zip(*(record.confusion for record in trained), strict=True)
    counts = [[sum(cells) for cells in zip(*row, strict=True)] for row in rows]
    worst = confusions(counts, WORST_PAIRS)
    drawn = size <= MOST_CLASSES
    used = range(size) if drawn else {i for pair in worst for i in (pair.true, pair.predicted)}
    return {
        "names": {str(i): clipped(names[i], LONGEST_NAME) for i in sorted(used)},
        "size": size,
        "counts": counts if drawn else None,
        "worst": [
            [pair.true, pair.predicted, pair.count, sum(counts[pair.true])] for pair in worst
        ],
    }


def is_sound(record: TrainedRecord) -> bool:
    """Whether there are classes, and counts for every two of them."""
    size = len(record.class_names)
    widths = [len(row) for row in record.confusion]
    counts = (count for row in record.confusion for count in row)
    return size > 0 and widths == [size] * size and all(count >= 0 for count in counts)

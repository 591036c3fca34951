"""The training of a final network for the page: its test error, confusion and head."""

from typing import Any

from prnas.io.errors import FormatError
from prnas.report.confusion import confusion_of
from prnas.report.picture_data import cell_picture
from prnas.report.plain_data import pick, rounded, text_at, whole_at
from prnas.report.view import Facts, RunInfo, View, seed_facts
from prnas.runs.records import Record, TrainedRecord
from prnas.space.genotype import ROLES, Genotype


class TrainingView(View):
    kind, result, result_name = "training", "test_error", "Test error"

    def __init__(self, info: RunInfo) -> None:
        super().__init__(info)
        self.trained: TrainedRecord | None = None
        self.genotype = _genotype(pick(info.config, "genotype"))

    @property
    def ended(self) -> bool:
        return self.trained is not None

    @property
    def planned(self) -> int:
        return whole_at(self.info.config, "training.epochs") or 0

    def add(self, record: Record) -> None:
        if isinstance(record, TrainedRecord):
            self.trained = record
        else:
            self.epochs.add(record)

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
        test = self.epochs.scores.get("test")
        error = 1 - test.accuracy if test else None
        return {
            **self.common(self._facts(), commands),
            **({"seconds": rounded(trained.seconds)} if trained else {}),
            "test_error": rounded(trained.test_error if trained else error),
            "averaged_epochs": trained.averaged_epochs if trained else None,
            "network": self._network(),
            "confusion": confusion_of([trained]) if trained else None,
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


def _genotype(data: Any) -> Genotype | None:
    try:
        return Genotype.from_json(data) if isinstance(data, dict) else None
    except FormatError:
        return None  # another way to say it; the page does without a drawing

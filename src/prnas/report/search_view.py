"""A search for the page: its cycles, its genotype, its head."""

from typing import Any

from prnas.report.cycles import Cycles
from prnas.report.picture_data import cell_picture
from prnas.report.plain_data import list_at, pick, rounded, text_at, whole_at
from prnas.report.view import Band, Facts, RunInfo, View, seed_facts
from prnas.runs.records import CycleRecord, GenotypeRecord, Record
from prnas.space.genotype import ROLES, Genotype
from prnas.space.network_size import network_size

CHANNELS, CELLS = 36, 20  # of the final network whose size is told, as in the paper
IMAGE = 32  # pixels, of the image that the MACs are for
# Of the sets that are known by name. A search's records do not say how many its images have.
CLASSES = {"digits": 10, "cifar10": 10, "cifar100": 100, "fashion-mnist": 10}
ASSUMED_CLASSES = 10


class SearchView(View):
    kind, result, result_name = "search", "validation", "Validation accuracy"

    def __init__(self, info: RunInfo) -> None:
        super().__init__(info)
        self._schedule = _schedule(info.config)
        for epochs, grace, *_ in self._schedule:
            self.bands.append(Band(self.planned, self.planned + epochs, grace))
        self.cycles = Cycles(
            whole_at(info.config, "network.nodes"), list_at(info.config, "space.initial_pool")
        )

    @property
    def ended(self) -> bool:
        return self.genotype is not None

    @property
    def planned(self) -> int:
        return self.bands[-1].end if self.bands else 0

    def add(self, record: Record) -> None:
        match record:
            case CycleRecord():
                self.cycles.add(record)
            case GenotypeRecord():
                self.genotype = Genotype.from_json(record.genotype)
            case _:
                self.epochs.add(record)

    def data(self) -> dict[str, Any]:
        info, validation = self.info, self.epochs.scores.get("validation")
        commands = self._commands(
            ("Repeat the search", f"prnas search {info.file('config.yaml')}"),
            "prnas search",
            [
                ("Train the network it found", f"prnas retrain {info.quoted}"),
                ("Draw the cells", f"prnas draw {info.file('genotype.json')}"),
            ],
        )
        return {
            **self.common(self._facts(), commands),
            "schedule": self._schedule,
            "validation": rounded(validation.accuracy if validation else None),
            "network": self._network(),
            "cycles": self.cycles.data(),
            "genotype": self._genotype(),
        }

    def _network(self) -> dict[str, Any] | None:
        """The size of the final network."""
        if self.genotype is None:
            return None
        known = CLASSES.get(text_at(self.info.config, "data.name") or "")
        classes = known or ASSUMED_CLASSES
        output = "mean" if pick(self.info.config, "network.output") == "mean" else "concat"
        size = network_size(
            self.genotype, CHANNELS, CELLS, classes, output=output, image_size=IMAGE
        )
        return {
            "parameters": size.parameters,
            "macs": size.macs,
            "channels": CHANNELS,
            "cells": CELLS,
            "classes": classes,
            "assumed": known is None,
            "image": IMAGE,
            "paper": True,  # not the size that a training will have
        }

    def _genotype(self) -> dict[str, Any] | None:
        if self.genotype is None:
            return None
        cells = {role: self.genotype.cell(role) for role in ROLES}
        return {
            "pictures": {role: cell_picture(cell) for role, cell in cells.items()},
            "edges": {
                role: [[state, edge.input, edge.op.label] for state, edge in cell.edges]
                for role, cell in cells.items()
            },
        }

    def _facts(self) -> Facts:
        config = self.info.config
        facts: Facts = []
        name = text_at(config, "data.name")
        if name:
            size = whole_at(config, "data.image_size")
            parts = [name]
            if size:
                parts.append(f"{size} × {size} pixels")
            images = self._images()
            if images:
                parts.append(f"about {images:,} images train the weights")
            facts.append(("Data", ", ".join(parts)))
        facts.append(("Setting", text_at(config, "space.name") or "?"))
        limits = _limits(config)
        if limits:
            facts.append(("Limits", limits))
        cells, channels = whole_at(config, "network.cells"), whole_at(config, "network.channels")
        nodes = whole_at(config, "network.nodes")
        if cells and channels and nodes:
            facts.append(
                ("Supernet", f"{cells} cells of {nodes} nodes, {channels} channels at first")
            )
        rate, least = text_at(config, "weights.lr"), text_at(config, "weights.lr_min")
        alpha = text_at(config, "architecture.lr")
        if rate and least and alpha:
            facts.append(("Learning rates", f"weights {rate} to {least}, architecture {alpha}"))
        return facts + seed_facts(self.info)

    def _images(self) -> int | None:
        """How many images train the weights: those that do not validate."""
        validation = self.epochs.scores.get("validation")
        share = pick(self.info.config, "data.architecture_share")
        if validation is None or not isinstance(share, float) or not 0 < share < 1:
            return None
        return round(validation.images * (1 - share) / share)


def _schedule(config: Any) -> list[list[int]]:
    """Epochs, grace epochs, morphisms, candidates of each cycle; none if it cannot be read."""
    keys = ("epochs", "grace_epochs", "morphisms", "candidates")
    rows = [[whole_at(cycle, key) for key in keys] for cycle in list_at(config, "schedule.cycles")]
    return [[value or 0 for value in row] for row in rows if row[0]]


def _limits(config: Any) -> str:
    """'kernels 3 to 7, dilation to 2, depth to 1, width to 1'."""
    low, high = (
        whole_at(config, "space.limits.kernel_min"),
        whole_at(config, "space.limits.kernel_max"),
    )
    parts = [f"kernels {low} to {high}"] if low and high else []
    for name in ("dilation", "depth", "width"):
        most = whole_at(config, f"space.limits.{name}_max")
        if most is not None:
            parts.append(f"{name} to {most}")
    return ", ".join(parts)

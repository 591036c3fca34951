"""A search for the page: its cycles, its genotype, its head."""

from dataclasses import asdict
from typing import Any, get_args

from prnas.config.architecture import RELAXATIONS, mover_of
from prnas.data.catalog import ABOUT
from prnas.io.errors import FormatError
from prnas.report.cycles import Cycles
from prnas.report.evaluations import Evaluations
from prnas.report.plain_data import list_at, pick, rounded, text_at, whole_at
from prnas.report.view import Band, Facts, RunInfo, View, cell_pictures, facts_of, phrase
from prnas.runs.certainty import verdict
from prnas.runs.records import (
    CycleRecord,
    EvaluationRecord,
    FitRecord,
    GenotypeRecord,
    NextTraining,
    Record,
)
from prnas.space.fitting import in_short
from prnas.space.genotype import Genotype
from prnas.space.nasbench201.truth import DATA_SETS, truth_of
from prnas.space.network_size import network_size
from prnas.space.scores import softmax
from prnas.space.shape import DARTS, CellShape, NetworkKind, Output, shape_from_data

# Channels and cells of the final network whose size is shown, as in the paper and NAS-Bench-201's.
FINAL: dict[NetworkKind, tuple[int, int]] = {"darts": (36, 20), "residual": (16, 15)}
# What scores are, by the scorers that need no supernet.
SCORED_BY = {
    "table": "validation after 12 epochs",
    "training": "validation after a training of its own",
    "proxy": "a zero-cost proxy",
}
IMAGE = 32  # pixels, of the image that the MACs are for
ASSUMED_CLASSES = 10  # a search's records do not say how many classes its images have


class SearchView(View):
    kind, result, result_name = "search", "validation", "Validation accuracy"

    def __init__(self, info: RunInfo) -> None:
        super().__init__(info)
        # What scored cells one by one, if anything did: then there was no supernet and no epoch.
        scorer, method = (text_at(info.config, f"searcher.{key}") for key in ("scorer", "method"))
        self.scorer = scorer if scorer in SCORED_BY and method not in (None, "none") else None
        self._schedule = [] if self.scorer else _schedule(info.config)
        self.ends: list[CycleRecord] = []
        self._fit: FitRecord | None = None
        self._next: NextTraining | None = None
        for epochs, grace, *_ in self._schedule:
            self.bands.append(Band(self.planned, self.planned + epochs, grace))
            self.planned += epochs
        self.cycles = Cycles(
            whole_at(info.config, "network.nodes"),
            list_at(info.config, "space.initial_pool"),
            RELAXATIONS.get(str(pick(info.config, "architecture.relaxation")), softmax),
            _shape(info.config),
        )
        self.evaluations = Evaluations(FINAL, self._classes[0], self._output)

    def add(self, record: Record) -> None:
        match record:
            case CycleRecord():
                self.cycles.add(record)
                self.ends.append(record)
            case EvaluationRecord():
                self.evaluations.add(record)
            case GenotypeRecord():
                self.genotype = Genotype.from_json(record.genotype)
                self._fit, self._next = record.fit, record.next
                self.ended = True
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
            **self._searcher(),
            "schedule": self._schedule,
            "validation": rounded(validation.accuracy if validation else None),
            "network": self._network(),
            "next": self._next and self._next.model_dump(),
            "cycles": self.cycles.data(),
            "genotype": self._genotype(),
            "truth": self._truth(),
        }

    def _searcher(self) -> dict[str, Any]:
        """Data about a searcher's evaluations, which count as epochs where nothing was trained."""
        data = self.evaluations.data(self.info.config)
        fields: dict[str, Any] = {"searcher": data, "without_supernet": self.scorer is not None}
        fields["scored_by"] = SCORED_BY.get(self.scorer or "")
        if self.scorer is not None:
            done = len(self.evaluations.scores)
            total = self.evaluations.total(self.info.config) or done
            seconds = rounded(self.evaluations.seconds)
            fields |= {"done": done, "planned": max(total, done), "seconds": seconds}
        return fields

    @property
    def _classes(self) -> tuple[int, bool]:
        """The number of classes, and whether it is only assumed."""
        about = ABOUT.get(text_at(self.info.config, "data.name") or "")
        return (about.classes, False) if about else (ASSUMED_CLASSES, True)

    @property
    def _output(self) -> Output:
        said = pick(self.info.config, "network.output")
        return said if said in get_args(Output) else "concat"

    def _network(self) -> dict[str, Any] | None:
        """The size of the final network."""
        if self.genotype is None:
            return None
        classes, assumed = self._classes
        channels, cells = FINAL[self.genotype.shape.network]
        size = network_size(
            self.genotype, channels, cells, classes, output=self._output, image_size=IMAGE
        )
        return {
            "parameters": size.parameters,
            "macs": size.macs,
            "channels": channels,
            "cells": cells,
            "classes": classes,
            "assumed": assumed,
            "image": IMAGE,
            "paper": True,  # not the size that a training will have
        }

    def _genotype(self) -> dict[str, Any] | None:
        if self.genotype is None:
            return None
        cells = {role: self.genotype.cell(role).edges for role in self.genotype.roles}
        edges = {
            role: [[state, edge.input, edge.op.label] for state, edge in edges]
            for role, edges in cells.items()
        }
        return {"pictures": cell_pictures(self.genotype), "edges": edges}

    def _truth(self) -> list[dict[str, Any]] | None:
        """NAS-Bench-201's numbers for the genotype, by data set; none if it is not in the table."""
        truth = None if self.genotype is None else truth_of(self.genotype)
        if truth is None:
            return None
        return [
            {"title": data_set.title, **asdict(truth.data_sets[data_set.name])}
            for data_set in DATA_SETS
        ]

    def _facts(self) -> Facts:
        config = self.info.config
        name, size = text_at(config, "data.name"), whole_at(config, "data.image_size")
        pixels = phrase("{0} × {0} pixels", size)
        images = phrase("about {:,} images train the weights", self._images())
        supernet = (whole_at(config, f"network.{key}") for key in ("cells", "nodes", "channels"))
        keys = ("weights.lr", "weights.lr_min", "architecture.lr")
        rates = [text_at(config, key) for key in keys]
        if self.scorer is not None:
            table = self.scorer == "table"
            return facts_of(
                ("Scores", SCORED_BY[self.scorer] + (", looked up in NAS-Bench-201" * table)),
                ("Data", text_at(config, "searcher.table.data" if table else "data.name")),
                ("Searcher", text_at(config, "searcher.method")),
                ("Setting", text_at(config, "space.name") or "?"),
            )
        if rates[-1] == "auto":
            rates[-1] += phrase(" (travel {})", text_at(config, "architecture.travel"))
        return facts_of(
            ("Data", name and ", ".join(filter(None, (name, pixels, images)))),
            ("Setting", text_at(config, "space.name") or "?"),
            ("Limits", _limits(pick(config, "space.limits"))),
            ("Supernet", phrase("{} cells of {} nodes, {} channels at first", *supernet)),
            ("Learning rates", phrase("weights {} to {}, architecture {}", *rates)),
            ("Scoring", self._scoring()),
            ("Searcher", self._method()),
            ("How sure", self._how_sure()),
            ("Final network", self._limits_kept()),
        )

    def _how_sure(self) -> str | None:
        """One sentence, once the search has ended."""
        keys = ("architecture.step", "architecture.lr")
        step, lr = (text_at(self.info.config, key) for key in keys)
        return verdict(self.ends, mover_of(step, lr)) if self.ended else None

    def _method(self) -> str | None:
        """The searcher that chose the genotype, if there was one."""
        method = text_at(self.info.config, "searcher.method")
        return None if method in (None, "none") else f"{method}, by the supernet"

    def _limits_kept(self) -> str | None:
        """The final network's costs in short, where there are limits on them."""
        fit = self._fit
        return None if fit is None else in_short(fit.limits, fit.cost, fit.fits, len(fit.given_up))

    def _scoring(self) -> str | None:
        """The measure by which candidates were judged, where it is not their weights alone."""
        scoring = text_at(self.info.config, "architecture.scoring")
        return None if scoring in (None, "weights") else scoring

    def _images(self) -> int | None:
        """The number of images that train the weights: those that do not validate."""
        validation = self.epochs.scores.get("validation")
        share = pick(self.info.config, "data.architecture_share")
        if validation is None or not isinstance(share, float) or not 0 < share < 1:
            return None
        return round(validation.images * (1 - share) / share)


def _shape(config: Any) -> CellShape:
    """The shape of the cells; that of DARTS if the config has none that can be read."""
    try:
        return shape_from_data(pick(config, "network.shape") or "darts")
    except FormatError:
        return DARTS


def _schedule(config: Any) -> list[list[int]]:
    """Epochs, grace epochs, morphisms, candidates of each cycle; none if it cannot be read."""
    keys = ("epochs", "grace_epochs", "morphisms", "candidates")
    rows = [[whole_at(cycle, key) for key in keys] for cycle in list_at(config, "schedule.cycles")]
    return [[value or 0 for value in row] for row in rows if row[0]]


def _limits(limits: Any) -> str:
    """'kernels 3 to 7, dilation to 2, depth to 1, width to 1'."""
    least, most = whole_at(limits, "kernel_min"), whole_at(limits, "kernel_max")
    texts = [phrase("kernels {} to {}", least, most)]
    for name in ("dilation", "depth", "width"):
        most = whole_at(limits, f"{name}_max")
        texts.append("" if most is None else f"{name} to {most}")
    return ", ".join(filter(None, texts))

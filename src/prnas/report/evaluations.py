"""A searcher's evaluations, as the page shows them: scores, sizes, and parents of cells."""

import json
import math
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Literal

from prnas.io.errors import FormatError
from prnas.report.plain_data import rounded, text_at, whole_at
from prnas.runs.records import EvaluationRecord
from prnas.space.genotype import Genotype
from prnas.space.layer_size import NetworkSize
from prnas.space.network_size import network_size
from prnas.space.shape import NetworkKind, Output

SCORE_DIGITS = 6


@dataclass(frozen=True, slots=True)
class ScorePlot:
    """Every score as a dot over a column of the evaluations; page and figures draw it.

    `course`: with the best so far as steps, and lines from parents to children.
    """

    id: str
    title: str
    column: Literal["images", "parameters", "macs"]
    across: str  # What the column is, for an axis.
    note: str
    course: bool = False


SCORE_PLOTS = (
    ScorePlot(
        "best-so-far",
        "Best so far",
        "images",
        "images that evaluations took",
        "dots: scores · steps: the best so far · thin lines: from parents to children · "
        "across: images that evaluations took",
        course=True,
    ),
    ScorePlot(
        "score-parameters",
        "Score against parameters",
        "parameters",
        "parameters of the final network",
        "of the final network",
    ),
)


class Evaluations:
    """Columns with a value for each evaluation, in their order; and those of the finalists.

    Parameters are those of the final network of `final` channels and cells.
    """

    def __init__(
        self, final: dict[NetworkKind, tuple[int, int]], classes: int, output: Output
    ) -> None:
        self._final, self._classes = final, classes
        self._output: Output = output
        self.scores: list[float] = []
        self.parents: list[int | None] = []
        self.parameters: list[int | None] = []
        self.macs: list[int | None] = []
        self.proxies: list[dict[str, float | None] | None] = []
        self.entropies: list[float | None] = []  # of a controller's choices
        self.bests: list[float] = []
        self._shares: list[float] = []
        self.measure: str | None = None  # what scores are, if no accuracies
        self._scored: dict[str, list[float]] = {}  # the scores of each cell
        self.images: list[int] = []
        self.finalists: list[tuple[int, float]] = []  # (number, score)
        self.seconds = 0.0

    def add(self, record: EvaluationRecord) -> None:
        self.seconds += record.seconds
        score = round(record.score, SCORE_DIGITS)
        key = f"{record.share} {json.dumps(record.genotype, sort_keys=True)}"
        if record.stage == "final":
            self.finalists.append((record.number, score))
            return
        self._scored.setdefault(key, []).append(record.score)
        if record.stage == "repeat":
            return
        self.scores.append(score)
        self.parents.append(record.parent)
        self.images.append(record.images)
        self.bests.append(round(record.best, SCORE_DIGITS))
        self._shares.append(record.share or 1.0)
        self.entropies.append(rounded(record.entropy))
        self.measure = record.measure
        proxies = record.proxies
        self.proxies.append(
            None if proxies is None else {name: rounded(value) for name, value in proxies.items()}
        )
        size = self._size(record.genotype)
        self.parameters.append(None if size is None else size.parameters)
        self.macs.append(None if size is None else size.macs)

    def _size(self, data: dict[str, Any]) -> NetworkSize | None:
        try:
            genotype = Genotype.from_json(data)
        except FormatError:
            return None
        channels, cells = self._final[genotype.shape.network]
        return network_size(genotype, channels, cells, self._classes, output=self._output)

    @property
    def noise(self) -> dict[str, Any] | None:
        """The deviation of the scores of one cell, over all that were scored more than once."""
        again = [scores for scores in self._scored.values() if len(scores) > 1]
        if not again:
            return None
        squares = sum((score - fmean(scores)) ** 2 for scores in again for score in scores)
        freedom = sum(len(scores) - 1 for scores in again)
        return {"cells": len(again), "deviation": rounded(math.sqrt(squares / freedom))}

    @property
    def best(self) -> float | None:
        """The score that chose: that of the best finalist, if there are any."""
        if self.finalists:
            return max(score for _, score in self.finalists)
        return self.bests[-1] if self.bests else None

    @property
    def best_number(self) -> int:
        """Whose score is the best: one by more of a training is better than any by less."""
        worths = [*zip(self._shares, self.scores, strict=True)]
        return worths.index(max(worths)) + 1

    def data(self, config: Any) -> dict[str, Any] | None:
        """None of a search without a searcher, or before it began."""
        if not self.scores:
            return None
        return {
            "method": text_at(config, "searcher.method"),
            "plots": [asdict(plot) for plot in SCORE_PLOTS],
            "total": self.total(config),
            "scores": self.scores,
            "parents": self.parents,
            "parameters": self.parameters,
            "macs": self.macs,
            "proxies": self.proxies,
            "entropies": self.entropies,
            "bests": self.bests,
            "measure": self.measure,
            "noise": self.noise,
            "images": self.images,
            "finalists": self.finalists,
            "best": self.best,
            "best_number": self.best_number,
            "seconds": rounded(self.seconds),
        }

    def total(self, config: Any) -> int | None:
        """The number of evaluations that the config plans; none if it cannot be told."""
        bounds = [whole_at(config, "searcher.budget.evaluations")]
        images = whole_at(config, "searcher.budget.images")
        if text_at(config, "searcher.scorer") == "supernet":
            images = None  # Its training counts as well.
        if images is not None and self.images and self.images[0] > 0:
            bounds.append(max(images // self.images[0], 1))
        return min((bound for bound in bounds if bound is not None), default=None)

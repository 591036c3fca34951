"""A run that is on disk, as a value: its config, what it recorded, what it found."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from prnas.drawing.notebook import html_of
from prnas.io.errors import UserError
from prnas.io.frames import frame_of
from prnas.report.plain_data import text_at, whole_at
from prnas.report.read_run import runs_in
from prnas.report.tidy import read_verified
from prnas.runs.named import what_to_train
from prnas.runs.names import GENOTYPE
from prnas.runs.records import CycleRecord, EpochRecord, Record, TrainedRecord
from prnas.runs.showing import Facts, epoch_rows, percent, seconds, short
from prnas.space.genotype import Genotype

K = TypeVar("K")


@dataclass(frozen=True, slots=True, repr=False)
class RecordedRun:
    """A search or a training as its folder has it, finished or not."""

    folder: Path  #: The run's folder.
    task: str  #: Either search or retrain.
    config: Mapping[str, Any]  #: The config as plain data.
    records: tuple[Record, ...]  #: All records.
    genotype: Genotype | None  #: What was found or trained, as far as it is known.

    @property
    def epochs(self) -> tuple[EpochRecord, ...]:
        """The record of every epoch."""
        return self._of(EpochRecord)

    @property
    def cycles(self) -> tuple[CycleRecord, ...]:
        """The record of every cycle's end."""
        return self._of(CycleRecord)

    @property
    def test_error(self) -> float | None:
        """The test error of a training which has ended."""
        return next((record.test_error for record in self._of(TrainedRecord)), None)

    @property
    def validation_accuracy(self) -> float | None:
        """The accuracy of a search's last validation."""
        scores = [
            epoch.scores["validation"] for epoch in self.epochs if "validation" in epoch.scores
        ]
        return scores[-1].accuracy if scores else None

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row for each epoch."""
        return epoch_rows(self.epochs)

    def to_pandas(self) -> Any:
        """The epochs as a `pandas.DataFrame`."""
        return frame_of(self.rows())

    def _of(self, kind: type[K]) -> tuple[K, ...]:
        return tuple(record for record in self.records if isinstance(record, kind))

    def _facts(self) -> Facts:
        training = self.task == "retrain"
        result = ("test error", percent(self.test_error))
        if not training:
            result = ("validation", percent(self.validation_accuracy))
        return [
            ("data", text_at(self.config, "data.name") or "?"),
            ("seed", str(whole_at(self.config, "seed"))),
            result,
            ("epochs", str(len(self.epochs))),
            ("time", seconds(sum(epoch.seconds for epoch in self.epochs))),
            ("folder", str(self.folder)),
        ]

    def __repr__(self) -> str:
        return short(f"RecordedRun, {self.task}", self._facts())

    def _repr_html_(self) -> str:
        return html_of(f"{self.task} {self.folder.name}", self._facts(), self.genotype)


def read_run(folder: str | Path) -> RecordedRun:
    """The run in a folder, checked as for its report; a `UserError` says what is wrong with it."""
    path = Path(folder)
    runs = runs_in(path)
    if runs != [path]:
        names = ", ".join(run.name for run in runs[:5])
        raise UserError(f"{path} holds several runs; read one of them: {names}")
    info, records = read_verified(path)
    task = "retrain" if info.is_training else "search"
    has_genotype = task == "retrain" or (path / GENOTYPE).is_file()
    genotype = what_to_train(str(path)).genotype if has_genotype else None
    return RecordedRun(path, task, info.config, tuple(records), genotype)

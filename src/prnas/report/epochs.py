"""The epochs of a run as columns of numbers. Nothing else in the report reads epoch records."""

from prnas.report.plain_data import rounded
from prnas.runs.records import BatchRecord, EpochRecord, Record, Score


class Epochs:
    """A value an epoch in every column, rounded once when it is added."""

    def __init__(self) -> None:
        self.columns: dict[str, list[float | None]] = {}
        self.batches: list[tuple[float, int]] = []  # (epochs done, batch size from there on)
        self.scores: dict[str, Score] = {}  # the last of every name
        self.done = 0
        self.seconds = 0.0
        self.memory = 0.0  # the peak, in bytes
        self._pending: list[BatchRecord] = []

    def add(self, record: Record) -> None:
        match record:
            case BatchRecord():
                self._pending.append(record)
            case EpochRecord():
                self._add_epoch(record)
            case _:
                pass

    def _add_epoch(self, record: EpochRecord) -> None:
        row: dict[str, float | None] = {
            "lr": record.lr,
            "drop_path": record.drop_path,
            "batch": record.batch,
            "seconds": record.seconds,
            "speed": record.images_per_second,
            "memory": record.memory,
        }
        for name, score in record.scores.items():
            row[f"{name}_accuracy"] = score.accuracy
            row[f"{name}_error"] = 1 - score.accuracy
            row[f"{name}_loss"] = score.loss
        self.scores |= record.scores
        for name in row.keys() | self.columns.keys():
            column = self.columns.setdefault(name, [None] * self.done)
            column.append(rounded(row.get(name)))
        # A change of the batch size stands where its step was within the epoch.
        for change in self._pending:
            position = self.done + min(change.step / max(record.steps, 1), 1.0)
            self.batches.append((round(position, 3), change.batch))
        self._pending.clear()
        self.seconds += record.seconds
        self.memory = max(self.memory, record.memory)
        self.done += 1

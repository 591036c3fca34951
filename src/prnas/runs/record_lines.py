"""Records as lines of JSON, and a file of them, read piece by piece."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Literal

from pydantic import AfterValidator, Field, TypeAdapter
from pydantic_core import to_json

from prnas.io.errors import FormatError
from prnas.io.reading import parse_json, validated
from prnas.runs.record_versions import FIRST, VERSION, from_first, to_first, version_of
from prnas.runs.records import (
    BatchRecord,
    Count,
    CycleRecord,
    DerivedGenotype,
    EndRecord,
    EpochRecord,
    EvaluationRecord,
    ExecutionRecord,
    FrozenRecord,
    Record,
    Score,
)

_MOST_LINE = 16_000_000  # bytes
_REMEMBERED = 200  # bytes before the offset reached, by which a file that was cut back is known


def _exactly(*names: str) -> AfterValidator:
    def check(seconds: dict[str, float]) -> dict[str, float]:
        if set(seconds) != set(names):
            raise ValueError(f"must have {', '.join(names)}")
        return seconds

    return AfterValidator(check)


# The seconds of an epoch by what they were spent on; "saving" is of checkpoints and records.
_SearchSeconds = Annotated[
    dict[str, float],
    _exactly("data", "architecture", "weights", "validation", "saving", "other"),
]
_TrainingSeconds = Annotated[
    dict[str, float], _exactly("data", "training", "testing", "saving", "other")
]


class _SearchEpochLine(FrozenRecord):
    """An epoch of a search as the file has it."""

    type: Literal["epoch"]
    cycle: Count
    epoch: Count
    total_epoch: Count
    grace: bool
    steps: int
    lr: float
    architecture_lr: float | None = None
    derived: DerivedGenotype | None = None
    stopped_candidates: int | None = None
    controller_score: float | None = None
    controller_entropy: float | None = None
    controller_baseline: float | None = None
    curvature: float | None = None
    batch: int
    weights: Score
    architecture: Score | None
    validation: Score | None
    seconds: float
    images_per_second: float
    memory: float
    seconds_for: _SearchSeconds


class _TrainingEpochLine(FrozenRecord):
    """An epoch of a training as the file has it."""

    type: Literal["training"]
    epoch: Count
    steps: int
    lr: float
    drop_path: float
    batch: int
    training: Score
    validation: Score | None = None
    test: Score | None
    seconds: float
    images_per_second: float
    memory: float
    seconds_for: _TrainingSeconds


_EpochLine = _SearchEpochLine | _TrainingEpochLine
_OtherLine = BatchRecord | ExecutionRecord | CycleRecord | EvaluationRecord | EndRecord
_Line = Annotated[_EpochLine | _OtherLine, Field(discriminator="type")]
_ADAPTER: TypeAdapter[_Line] = TypeAdapter(_Line)


def to_line(record: Record, version: int = VERSION) -> str:
    line = _epoch_line(record) if isinstance(record, EpochRecord) else record
    # Fields that later releases added are written only where they say something.
    fields = type(line).model_fields
    unsaid = {name for name, value in line if value is None and fields[name].default is None}
    if version == FIRST:
        data = to_first(line.model_dump(exclude=unsaid))
        return to_json(data, inf_nan_mode="null").decode() + "\n"
    return line.model_dump_json(exclude=unsaid) + "\n"


def from_line(line: str, version: int = VERSION) -> Record:
    data = parse_json(line)
    read = validated(_ADAPTER, from_first(data) if version == FIRST else data, "record")
    return _epoch_record(read) if isinstance(read, _EpochLine) else read


def _epoch_line(record: EpochRecord) -> _EpochLine:
    kind = _SearchEpochLine if record.type == "epoch" else _TrainingEpochLine
    own = {name: getattr(record, name, None) for name in kind.model_fields}
    return kind.model_validate(own | record.scores)


def _epoch_record(line: _EpochLine) -> EpochRecord:
    own = {name: value for name, value in line if name in EpochRecord.model_fields}
    return EpochRecord(
        **{"total_epoch": line.epoch, **own},
        scores={name: value for name, value in line if isinstance(value, Score)},
    )


def read_records(path: Path) -> list[Record]:
    """The records of a run. A last line that is still being written is left out."""
    return RecordReader(path).news()[1]


class RecordReader:
    """Reads a run's records piece by piece. A resumed run cuts them back: then it starts anew."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._forget()

    def _forget(self) -> None:
        self._offset, self._lines, self._tail = 0, 0, b""
        self._version = VERSION

    def news(self) -> tuple[bool, list[Record]]:
        """Whether all records returned so far are void, and those that came since.

        A last line without its end is left for the next time. A `FormatError` names a bad line.
        """
        with self._path.open("rb") as file:
            file.seek(max(0, self._offset - len(self._tail)))
            void = file.read(len(self._tail)) != self._tail
            if void:
                self._forget()
            file.seek(self._offset)
            try:
                read = [self._read(line) for line in _whole_lines(file)]
            except (FormatError, UnicodeDecodeError) as error:
                number = self._lines + 1
                self._forget()
                raise FormatError([f"{self._path}, line {number}: {error}"]) from None
        return void, [record for record in read if record is not None]

    def _read(self, line: bytes) -> Record | None:
        """The record of a line; none of the header."""
        text, is_header = line.decode(), False
        if self._lines == 0:
            self._version, is_header = version_of(text)
        record = None if is_header else from_line(text, self._version)
        self._lines += 1
        self._offset += len(line)
        self._tail = (self._tail + line)[-_REMEMBERED:]
        return record


def _whole_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Lines with their ends, up to the last one that has an end; none may be beyond all bounds."""
    while line := file.readline(_MOST_LINE):
        if not line.endswith(b"\n"):
            if len(line) == _MOST_LINE:
                raise FormatError([f"the line has more than {_MOST_LINE:,} bytes"])
            return
        yield line

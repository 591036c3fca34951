"""What a run says: one typed record an epoch, a cycle and a decision, as JSON lines.

Records describe; nobody reads them back to decide. Fields that hold seconds, speed or memory differ
from run to run; all others are the same for the same config and seed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

from prnas.config.choices import Execution
from prnas.io.errors import FormatError
from prnas.io.reading import parse_json, validated
from prnas.space.genotype import Role

_MOST_LINE = 16_000_000  # bytes
_REMEMBERED = 200  # bytes before the offset reached, by which a file that was cut back is known


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Score(_Record):
    """Mean loss and accuracy over `images` images."""

    loss: float
    accuracy: float
    images: int


class EpochRecord(_Record):
    """One epoch: of a search if `type` is "epoch", of a final network's training if "training".

    Cycles and epochs count from 0, `epoch` within its cycle; a training has one cycle.

    `scores` are by name, as far as they were measured. A search has "weights" (images that trained
    the network's weights), "architecture" (images that trained architecture weights; not in grace
    epochs) and "validation" (the architecture half after the epoch). A training has "training"
    (varied images, dropped paths included) and "test" (the weights of the final model, after the
    epoch). The first is always of the images that trained the weights.
    """

    type: Literal["epoch", "training"]
    cycle: int = 0
    epoch: int
    total_epoch: int  # Number of epochs before this one, in all cycles.
    grace: bool = False
    steps: int
    lr: float  # Learning rate of the weights at the epoch's end.
    architecture_lr: float | None = None  # That of the last architecture step, if there was one.
    drop_path: float | None = None  # Drop-path probability of a training.
    batch: int  # Batch size at the epoch's end.
    scores: dict[str, Score]
    seconds: float
    images_per_second: float
    memory: float  # Peak, in bytes.
    seconds_for: dict[str, float]  # The seconds by what they were spent on, such as "data".


class BatchRecord(_Record):
    """A change of the batch size, from the given step (of its epoch) on."""

    type: Literal["batch"] = "batch"
    cycle: int
    epoch: int
    step: int
    batch: int
    reason: Literal["start", "memory", "out-of-memory"]


class ExecutionRecord(_Record):
    """How the supernet is computed, from the given step (of its epoch) on, as was measured."""

    type: Literal["execution"] = "execution"
    cycle: int
    epoch: int
    step: int
    execution: Execution
    seconds: dict[Execution, float]  # Median of a step, each way.


class CycleRecord(_Record):
    """The end of a cycle: what the architecture weights said, and what followed.

    `pools` are the labels of the candidates that the cycle trained, for each edge of each cell, and
    `architecture` their architecture weights. `change` is a `prnas.space.change.Change` in JSON;
    `statistics` are those of the pools after it.
    """

    type: Literal["cycle"] = "cycle"
    cycle: int
    pools: dict[Role, list[list[str]]]
    architecture: dict[Role, list[list[float]]]
    change: dict[str, Any]
    statistics: dict[str, Any]


class GenotypeRecord(_Record):
    """The end of a search."""

    type: Literal["genotype"] = "genotype"
    genotype: dict[str, Any]


class TrainedRecord(_Record):
    """The end of a training. `confusion[i][j]` counts test images of class i taken for class j."""

    type: Literal["trained"] = "trained"
    test_error: float  # the mean of the last epochs'
    averaged_epochs: int  # how many those are
    test: Score  # of the model that was saved
    parameters: int  # without the auxiliary head
    macs: int  # multiply-accumulates for one image
    class_names: list[str]
    confusion: list[list[int]]
    seconds: float  # of the whole training


Record = EpochRecord | BatchRecord | ExecutionRecord | CycleRecord | GenotypeRecord | TrainedRecord


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


class _SearchEpochLine(_Record):
    """An epoch of a search as the file has it."""

    type: Literal["epoch"]
    cycle: int
    epoch: int
    total_epoch: int
    grace: bool
    steps: int
    lr: float
    architecture_lr: float | None = None
    batch: int
    weights: Score
    architecture: Score | None
    validation: Score | None
    seconds: float
    images_per_second: float
    memory: float
    parts: _SearchSeconds


class _TrainingEpochLine(_Record):
    """An epoch of a training as the file has it."""

    type: Literal["training"]
    epoch: int
    steps: int
    lr: float
    drop_path: float
    batch: int
    training: Score
    test: Score | None
    seconds: float
    images_per_second: float
    memory: float
    parts: _TrainingSeconds


_EpochLine = _SearchEpochLine | _TrainingEpochLine
_OtherLine = BatchRecord | ExecutionRecord | CycleRecord | GenotypeRecord | TrainedRecord
_Line = Annotated[_EpochLine | _OtherLine, Field(discriminator="type")]
_ADAPTER: TypeAdapter[_Line] = TypeAdapter(_Line)


def to_line(record: Record) -> str:
    if isinstance(record, EpochRecord):  # fields of later releases: only where they say something
        return _epoch_line(record).model_dump_json(exclude_defaults=True) + "\n"
    return record.model_dump_json() + "\n"


def from_line(line: str) -> Record:
    read = validated(_ADAPTER, parse_json(line), "record")
    return _epoch_record(read) if isinstance(read, _EpochLine) else read


def _epoch_line(record: EpochRecord) -> _EpochLine:
    kind = _SearchEpochLine if record.type == "epoch" else _TrainingEpochLine
    own = {name: getattr(record, name, None) for name in kind.model_fields}
    return kind.model_validate(own | record.scores | {"parts": record.seconds_for})


def _epoch_record(line: _EpochLine) -> EpochRecord:
    own = {name: value for name, value in line if name in EpochRecord.model_fields}
    return EpochRecord(
        **{"total_epoch": line.epoch, **own},
        scores={name: value for name, value in line if isinstance(value, Score)},
        seconds_for=line.parts,
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
                records = [self._read(line) for line in _whole_lines(file)]
            except (FormatError, UnicodeDecodeError) as error:
                number = self._lines + 1
                self._forget()
                raise FormatError([f"{self._path}, line {number}: {error}"]) from None
        return void, records

    def _read(self, line: bytes) -> Record:
        record = from_line(line.decode())
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

"""What a run says: one typed record an epoch, a cycle and a decision, as JSON lines.

Records describe; nobody reads them back to decide. Fields that hold seconds, speed or memory differ
from run to run (`VARYING`); all others are the same for the same config and seed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from prnas.io.errors import FormatError
from prnas.io.reading import parse_json, validated
from prnas.space.genotype import Role

_MOST_LINE = 16_000_000  # bytes
VARYING = ("seconds", "images_per_second", "memory", "parts")


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Score(_Record):
    """Mean loss and accuracy over `images` images."""

    loss: float
    accuracy: float
    images: int


class Parts(_Record):
    """Seconds of an epoch by what they were spent on."""

    data: float
    architecture: float
    weights: float
    validation: float
    saving: float  # checkpoints and records
    other: float


class EpochRecord(_Record):
    """One epoch. Cycles and epochs count from 0, `epoch` within its cycle."""

    type: Literal["epoch"] = "epoch"
    cycle: int
    epoch: int
    total_epoch: int
    grace: bool
    steps: int
    lr: float
    batch: int  # at the epoch's end
    weights: Score  # while the network's weights were trained, on their half
    architecture: Score | None  # while architecture weights were trained; None in grace epochs
    validation: Score | None  # on the architecture half after the epoch
    seconds: float
    images_per_second: float
    memory: float  # peak, in bytes
    parts: Parts


class BatchRecord(_Record):
    """A change of the batch size, from the given step (of its epoch) on."""

    type: Literal["batch"] = "batch"
    cycle: int
    epoch: int
    step: int
    batch: int
    reason: Literal["start", "memory", "out-of-memory"]


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


class TrainingParts(_Record):
    """Seconds of a training epoch by what they were spent on."""

    data: float
    training: float
    testing: float
    saving: float  # checkpoints and records
    other: float


class TrainingRecord(_Record):
    """One epoch of the training of a final network; epochs count from 0."""

    type: Literal["training"] = "training"
    epoch: int
    steps: int
    lr: float  # at the epoch's end
    drop_path: float
    batch: int  # at the epoch's end
    training: Score  # of the main classifier, on varied images, dropped paths included
    test: Score | None  # of the weights that would be handed over, after the epoch
    seconds: float
    images_per_second: float
    memory: float  # peak, in bytes
    parts: TrainingParts


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


Record = Annotated[
    EpochRecord | BatchRecord | CycleRecord | GenotypeRecord | TrainingRecord | TrainedRecord,
    Field(discriminator="type"),
]
_ADAPTER: TypeAdapter[Record] = TypeAdapter(Record)


def to_line(record: Record) -> str:
    return record.model_dump_json() + "\n"


def from_line(line: str) -> Record:
    return validated(_ADAPTER, parse_json(line), "record")


def read_records(path: Path) -> Iterator[Record]:
    """The records of a run. A last line that is still being written is left out."""
    with path.open("rb") as file:
        number = 1
        try:
            for line in whole_lines(file):
                yield from_line(line.decode())
                number += 1
        except (FormatError, UnicodeDecodeError) as error:
            raise FormatError([f"{path}, line {number}: {error}"]) from None


def whole_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Lines with their ends, up to the last one that has an end; none may be beyond all bounds."""
    while line := file.readline(_MOST_LINE):
        if not line.endswith(b"\n"):
            if len(line) == _MOST_LINE:
                raise FormatError([f"the line has more than {_MOST_LINE:,} bytes"])
            return
        yield line


def without_varying(record: Record) -> dict[str, Any]:
    """What two runs of the same config and seed have in common."""
    return {name: value for name, value in record.model_dump().items() if name not in VARYING}

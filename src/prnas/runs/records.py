"""Records of a run: a typed one for each epoch, cycle and decision, as JSON lines.

Cycles, epochs and steps count from 1, as on the screen; docs/records.md describes every field.
Records describe; nobody reads them back to decide. Fields that hold seconds, speed or memory differ
from run to run; all others are the same for the same config and seed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter
from pydantic_core import to_json

from prnas.config.choices import Execution, Scoring
from prnas.io.errors import FormatError
from prnas.io.reading import parse_json, validated
from prnas.runs.record_versions import FIRST, VERSION, from_first, to_first, version_of
from prnas.space.costs import CostKind
from prnas.space.genotype import Role

_MOST_LINE = 16_000_000  # bytes
_REMEMBERED = 200  # bytes before the offset reached, by which a file that was cut back is known
Count = Annotated[int, Field(ge=1)]  # where counting starts at 1


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Score(_Record):
    """Mean loss and accuracy over `images` images."""

    loss: float  #: Mean loss.
    accuracy: float  #: Fraction of images whose class was right, from 0 to 1.
    images: int  #: Number of images.


class DerivedGenotype(_Record):
    """The genotype that would be derived if a search ended after an epoch."""

    genotype: dict[str, Any]  #: The genotype, as `genotype.json` has it.
    edits: int | None  #: Edit distance to the one before, if there was one.
    skips: dict[Role, float]  #: The share of each cell's operations.


class EpochRecord(_Record):
    """One epoch: of a search if `type` is "epoch", of a final network's training if "training".

    `epoch` counts within its cycle, `total_epoch` within the run; a training has one cycle.

    `scores` are by name, as far as they were measured. A search has "weights" (images that trained
    the network's weights), "architecture" (images that trained architecture weights; not in grace
    epochs) and "validation" (the architecture half after the epoch). A training has "training"
    (varied images, dropped paths included), "validation" if it has such a part, and "test" (the
    weights of the final model, after the epoch), unless an epoch's weights are to be chosen. The
    first is always of the images that trained the weights.
    """

    type: Literal["epoch", "training"]  #: Of a search, or of a training.
    cycle: Count = 1  #: The cycle of a search; a training has one.
    epoch: Count  #: The epoch within its cycle.
    total_epoch: Count  #: The epoch within the run.
    grace: bool = False  #: Whether it trained no architecture weights.
    steps: int  #: Number of steps.
    lr: float  #: Learning rate of the weights at the epoch's end.
    architecture_lr: float | None = None  #: That of the last architecture step, if there was one.
    derived: DerivedGenotype | None = None  #: A search has it unless all its weights are equal.
    stopped_candidates: int | None = None  #: Of a search that stops them one by one.
    controller_score: float | None = None  #: Of ENAS: mean score of what the controller wrote.
    controller_entropy: float | None = None  #: Of ENAS: mean entropy of its choices.
    controller_baseline: float | None = None  #: Of ENAS: baseline of its rewards in the end.
    curvature: float | None = None  #: Of a search that measures it, where it was due.
    drop_path: float | None = None  #: Drop-path probability of a training.
    batch: int  #: Batch size at the epoch's end.
    scores: dict[str, Score]  #: Loss and accuracy by name.
    seconds: float  #: Duration.
    images_per_second: float  #: Speed.
    memory: float  #: Peak, in bytes.
    seconds_for: dict[str, float]  #: The seconds by what they were spent on, such as "data".


# Fields of an epoch that only some searches have: numbers about their architecture.
OPTIONAL = (
    "curvature",
    "stopped_candidates",
    "controller_score",
    "controller_entropy",
    "controller_baseline",
)


class BatchRecord(_Record):
    """A change of the batch size, from the given step (of its epoch) on."""

    type: Literal["batch"] = "batch"  #: What the record is.
    cycle: Count  #: The cycle of a search; a training has one.
    epoch: Count  #: The epoch within its cycle.
    step: Count  #: The step within its epoch.
    batch: int  #: The batch size.
    reason: Literal["start", "memory", "out-of-memory"]  #: Why it is that.


class ExecutionRecord(_Record):
    """How the supernet is computed after the given step (of its epoch), as was measured."""

    type: Literal["execution"] = "execution"
    cycle: Count
    epoch: Count
    step: Count
    execution: Execution
    seconds: dict[Execution, float]  # Median of a step, each way.


class Worth(_Record):
    """The rise of the loss without each candidate of an edge, and the standard errors.

    `None` where nothing was measured.
    """

    mean: list[float | None]
    error: list[float | None]


class EdgeDecision(_Record):
    """A decision on an edge: the last candidate that was kept against the first that was pruned.

    `difference`: by how much more the loss rises without the kept one, with its standard error;
    `p`: how often chance alone brings as large a difference.
    """

    kept: str
    pruned: str
    difference: float
    error: float
    p: float


class InputDecision(_Record):
    """A node's last input that was kept against the first that was not; see `EdgeDecision`."""

    node: int
    kept: int
    pruned: int
    difference: float
    error: float
    p: float


class Evidence(_Record):
    """The measurements at the end of a cycle, on images of the architecture half.

    `removal` has the rise of the loss per image, `saliency` what its gradient foretells; each for
    each edge of each cell. `edges` has a decision for each edge, where there was one; `inputs`,
    after the last cycle, those on inputs of nodes. Of all `decisions`, `supported` are better than
    chance, and `contradicted` worse: less is lost without what was kept.
    """

    scoring: Scoring
    renormalise: bool
    images: int  # images that removal was measured on
    saliency_images: int
    passes: int  # forward passes with candidates left out
    share: float  # share of the cycle's computation that it took, by count
    removal: dict[Role, list[Worth]]
    saliency: dict[Role, list[Worth]]
    path_groups: int = 0  # groups of paths that were measured
    # How far the loss of paths with a candidate is below the mean of their group.
    paths: dict[Role, list[Worth]] = {}
    edges: dict[Role, list[EdgeDecision | None]]
    inputs: dict[Role, list[InputDecision]]
    decisions: int
    supported: int
    contradicted: int


class CycleRecord(_Record):
    """The end of a cycle: what the architecture weights said, and what followed.

    `pools` are the labels of the candidates that the cycle trained, for each edge of each cell, and
    `architecture_weights` a number for each. `change` is a `prnas.space.change.Change` in JSON;
    `statistics` are those of the pools after it.
    """

    type: Literal["cycle"] = "cycle"  #: What the record is.
    cycle: Count  #: The cycle that is over.
    pools: dict[Role, list[list[str]]]  #: Labels of the candidates, for each edge of each cell.
    architecture_weights: dict[Role, list[list[float]]]  #: A number for each candidate.
    change: dict[str, Any]  #: What was pruned and added, edge by edge.
    statistics: dict[str, Any]  #: Statistics of the pools after it.
    evidence: Evidence | None = None  #: How sure the decisions are, if it was measured.
    edge_weights: dict[Role, list[float]] | None = None  #: Of searches whose edges have them.


class EvaluationRecord(_Record):
    """A cell that a searcher asked for, with its score; see `prnas.searchers`.

    `stage` is "final" where one of the best is scored once more, on more images: then its score
    decides. `parent` is the number of the evaluation of the cell that this one was made from.
    """

    type: Literal["evaluation"] = "evaluation"  #: What the record is.
    number: Count  #: Number of the evaluation.
    stage: Literal["search", "final"] = "search"  #: Whether it is scored once more, at the end.
    genotype: dict[str, Any]  #: The cell, as `genotype.json` has it.
    score: float  #: An accuracy, as a fraction; or a proxy, see `measure`.
    best: float  #: The best score of its stage so far.
    parent: Count | None = None  #: Number of the evaluation of the cell it was made from.
    images: int  #: Images that all evaluations so far have taken.
    share: float | None = None  #: Share of a whole training, where it was less.
    measure: str | None = None  #: What the score is, where it is no accuracy: a zero-cost proxy.
    proxies: dict[str, float] | None = None  #: Of a search that records them.
    entropy: float | None = None  #: Of the choices that made the cell, where a controller did.
    seconds: float  #: Duration of this one.


class GivenUpEdge(_Record):
    """An edge on which the genotype differs from the search's own; `None`: not read there."""

    role: Role
    node: int
    input: int
    own: str | None
    fitting: str | None


class FitRecord(_Record):
    """What limits on the final network made of the genotype.

    Costs are `params`, `macs` and `latency`, in nanoseconds (0 without a table). `own` is the
    genotype that the search would have chosen without limits; where nothing `fits`, it stays.
    """

    limits: dict[CostKind, int]  #: The limits.
    fits: bool  #: Whether the genotype keeps them.
    cost: dict[CostKind, int]  #: What its final network costs.
    strength: float  #: Total strength of all edges that are kept.
    own: dict[str, Any]  #: The genotype that the search would have chosen without limits.
    own_cost: dict[CostKind, int]  #: What that one's network costs.
    own_strength: float  #: Total strength of that one.
    given_up: list[GivenUpEdge]  #: The edges in which the two differ.
    smallest: dict[CostKind, int] | None = None  #: Of each kind alone, where nothing fits.


class NextTraining(_Record):
    """The network that `prnas retrain RUN` trains after a search, without its auxiliary head."""

    parameters: int  #: Number of parameters.
    macs: int  #: Multiply-accumulates for an image.
    channels: int  #: Channels of the first cells.
    cells: int  #: Number of cells.
    classes: int  #: Number of classes.
    image: list[int]  #: Height and width of an image.


class GenotypeRecord(_Record):
    """The end of a search; `fit`, if it had limits on the final network."""

    type: Literal["genotype"] = "genotype"
    genotype: dict[str, Any]
    fit: FitRecord | None = None
    next: NextTraining | None = None


class TruthRecord(_Record):
    """The entry of NAS-Bench-201's table for the genotype of a search.

    `truth` is a `prnas.space.nasbench201.truth.Truth` in JSON. Other spaces have no such record.
    """

    type: Literal["truth"] = "truth"
    truth: dict[str, Any]


class StartedFrom(_Record):
    """The trained model whose weights a training started with, and what did not come from it."""

    model: str  # as it was named
    weights_sha256: str
    new: list[str]  # parts with weights of their own, such as "classifier"


class TrainedRecord(_Record):
    """The end of a training. `confusion[i][j]` counts test images of class i taken for class j."""

    type: Literal["trained"] = "trained"
    test_error: float  # the mean of the last epochs'
    averaged_epochs: int  # how many those are
    test: Score  # score of the saved model
    parameters: int  # without the auxiliary head
    macs: int  # multiply-accumulates for one image
    class_names: list[str]
    confusion: list[list[int]]
    seconds: float  # duration of the whole training
    started_from: StartedFrom | None = None
    class_weights: list[float] | None = None  # of the loss, if classes had any
    validation: Score | None = None  # of the saved model, if there was a validation part
    kept_epoch: Count | None = None  # the epoch of the saved weights, if it was chosen


_EndRecord = GenotypeRecord | TruthRecord | TrainedRecord
Record = EpochRecord | BatchRecord | ExecutionRecord | CycleRecord | EvaluationRecord | _EndRecord


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


class _TrainingEpochLine(_Record):
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
_OtherLine = BatchRecord | ExecutionRecord | CycleRecord | EvaluationRecord | _EndRecord
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

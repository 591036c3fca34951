"""Records of a run: a typed one for each epoch, cycle and decision.

Cycles, epochs and steps count from 1, as on the screen; docs/records.md describes every field.
`record_lines` writes them as lines of JSON, and reads them.
Records describe; nobody reads them back to decide. Fields that hold seconds, speed or memory differ
from run to run; all others are the same for the same config and seed.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from prnas.config.choices import Execution, Scoring
from prnas.space.costs import CostKind
from prnas.space.genotype import Role

Count = Annotated[int, Field(ge=1)]  # A number that is counted from 1.


class FrozenRecord(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Score(FrozenRecord):
    """Mean loss and accuracy over `images` images."""

    loss: float  #: Mean loss.
    accuracy: float  #: Fraction of images whose class was right, from 0 to 1.
    images: int  #: Number of images.


class DerivedGenotype(FrozenRecord):
    """The genotype that would be derived if a search ended after an epoch, or after a cycle."""

    genotype: dict[str, Any]  #: The genotype, as `genotype.json` has it.
    edits: int | None  #: Edit distance to the one before, if there was one.
    skips: dict[Role, float]  #: The share of each cell's operations.


class EpochRecord(FrozenRecord):
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


class BatchRecord(FrozenRecord):
    """A change of the batch size, from the given step (of its epoch) on."""

    type: Literal["batch"] = "batch"  #: What the record is.
    cycle: Count  #: The cycle of a search; a training has one.
    epoch: Count  #: The epoch within its cycle.
    step: Count  #: The step within its epoch.
    batch: int  #: The batch size.
    reason: Literal["start", "memory", "out-of-memory"]  #: Why it is that.


class ExecutionRecord(FrozenRecord):
    """The execution of the supernet after the given step (of its epoch), chosen by measurement."""

    type: Literal["execution"] = "execution"
    cycle: Count
    epoch: Count
    step: Count
    execution: Execution
    seconds: dict[Execution, float]  # Median of a step, each way.


class Worth(FrozenRecord):
    """The rise of the loss without each candidate of an edge, and the standard errors.

    `None` where nothing was measured.
    """

    mean: list[float | None]
    error: list[float | None]


class EdgeDecision(FrozenRecord):
    """A decision on an edge: the last candidate that was kept against the first that was pruned.

    `difference`: by how much more the loss rises without the kept one, with its standard error;
    `p`: how often chance alone brings as large a difference.
    """

    kept: str
    pruned: str
    difference: float
    error: float
    p: float


class InputDecision(FrozenRecord):
    """A node's last input that was kept against the first that was not; see `EdgeDecision`."""

    node: int
    kept: int
    pruned: int
    difference: float
    error: float
    p: float


Uncompared = Literal["unmeasured", "rule"]


class Evidence(FrozenRecord):
    """The measurements at the end of a cycle, on images of the architecture half.

    `removal` has the rise of the loss per image, `saliency` what its gradient foretells; each for
    each edge of each cell. `edges` has a decision for each edge, where there was one; `uncompared`
    why there is none where a candidate was pruned; `inputs`, after the last cycle, those on inputs
    of nodes. Of all `decisions`, `supported` are better than chance, and `contradicted` worse: less
    is lost without what was kept.
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
    # "unmeasured": there was no time for the edge; "rule": a bound on skips, limits, or that a
    # convolution stays decided, not what its candidates are worth.
    uncompared: dict[Role, list[Uncompared | None]] = {}
    limited_by: Literal["share", "images", "half"] | None = None  # what bounded `images`
    inputs: dict[Role, list[InputDecision]]
    decisions: int
    supported: int
    contradicted: int


class CycleRecord(FrozenRecord):
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
    derived: DerivedGenotype | None = None  #: By what was measured, where that decides.


class EvaluationRecord(FrozenRecord):
    """A cell that a searcher asked for, with its score; see `prnas.searchers`.

    `stage` is "final" where one of the best is scored once more, on more images: then its score
    decides; and "repeat" where the best is scored again to tell how much scores vary: that decides
    nothing. `parent` is the number of the evaluation of the cell that this one was made from.
    """

    type: Literal["evaluation"] = "evaluation"  #: What the record is.
    number: Count  #: Number of the evaluation.
    #: Whether it is scored once more, at the end: to decide, or to tell how much scores vary.
    stage: Literal["search", "final", "repeat"] = "search"
    genotype: dict[str, Any]  #: The cell, as `genotype.json` has it.
    score: float  #: An accuracy, as a fraction; or a proxy, see `measure`.
    best: float  #: The best score of its stage so far.
    parent: Count | None = None  #: Number of the evaluation of the cell it was made from.
    images: int  #: Images that all evaluations so far have taken.
    share: float | None = None  #: Share of a whole training, where it was less.
    measure: str | None = None  #: What the score is, where it is no accuracy: a zero-cost proxy.
    proxies: dict[str, float] | None = None  #: Of a search that records them.
    entropy: float | None = None  #: Of the choices that made the cell, where a controller did.
    used: float | None = None  #: Share of a budget in images, steps or seconds that is used.
    seconds: float  #: Duration of this one.


class GivenUpEdge(FrozenRecord):
    """An edge on which the genotype differs from the search's own; `None`: not read there."""

    role: Role
    node: int
    input: int
    own: str | None
    fitting: str | None


class FitRecord(FrozenRecord):
    """The effect of limits on the final network: the genotype's costs with and without them.

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


class NextTraining(FrozenRecord):
    """The network that `prnas retrain RUN` trains after a search, without its auxiliary head."""

    parameters: int  #: Number of parameters.
    macs: int  #: Multiply-accumulates for an image.
    channels: int  #: Channels of the first cells.
    cells: int  #: Number of cells.
    classes: int  #: Number of classes.
    image: list[int]  #: Height and width of an image.


class GenotypeRecord(FrozenRecord):
    """The end of a search; `fit`, if it had limits on the final network."""

    type: Literal["genotype"] = "genotype"
    genotype: dict[str, Any]
    fit: FitRecord | None = None
    next: NextTraining | None = None


class TruthRecord(FrozenRecord):
    """The entry of NAS-Bench-201's table for the genotype of a search.

    `truth` is a `prnas.space.nasbench201.truth.Truth` in JSON. Other spaces have no such record.
    """

    type: Literal["truth"] = "truth"
    truth: dict[str, Any]


class StartedFrom(FrozenRecord):
    """The trained model whose weights a training started with, and what did not come from it."""

    model: str  # The model's name, as it was given.
    weights_sha256: str
    new: list[str]  # parts with weights of their own, such as "classifier"


class TrainedRecord(FrozenRecord):
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
    class_weights: list[float] | None = None  # Weights of classes in the loss, if there were any.
    validation: Score | None = None  # Score of the saved model on the validation images, if any.
    kept_epoch: Count | None = None  # the epoch of the saved weights, if it was chosen


EndRecord = GenotypeRecord | TruthRecord | TrainedRecord
Record = EpochRecord | BatchRecord | ExecutionRecord | CycleRecord | EvaluationRecord | EndRecord

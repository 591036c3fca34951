"""What a run tells while it goes on. Callbacks watch; they change nothing."""

from dataclasses import dataclass
from pathlib import Path

from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.models.model import Model
from prnas.runs.records import BatchRecord, CycleRecord, EpochRecord, TrainingRecord
from prnas.space.genotype import Genotype
from prnas.space.pools import Pools


@dataclass(frozen=True, slots=True)
class Start:
    """A search begins, or goes on. Positions are those of the next step."""

    config: SearchConfig
    folder: Path | None
    device: str
    world_size: int
    pools: Pools
    num_parameters: int
    resumed: bool
    cycle: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Step:
    """A step is done. Losses and accuracies are means over the epoch so far."""

    cycle: int
    epoch: int
    grace: bool
    step: int
    images: int  # of the weights' half, in this epoch so far
    epoch_images: int  # that the epoch will have
    lr: float
    batch: int
    weights_loss: float
    weights_accuracy: float
    architecture_accuracy: float | None
    images_per_second: float
    memory: float
    seconds_left: float | None  # of the whole search; None: too early to tell


@dataclass(frozen=True, slots=True)
class Validating:
    """Validation goes on."""

    images: int
    of_images: int


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found. `folder` is `None` for a search that wrote nothing."""

    genotype: Genotype
    folder: Path | None
    epochs: tuple[EpochRecord, ...]
    cycles: tuple[CycleRecord, ...]
    seconds: float

    @property
    def validation_accuracy(self) -> float | None:
        """The last one that was measured."""
        found = [one.validation.accuracy for one in self.epochs if one.validation is not None]
        return found[-1] if found else None


@dataclass(frozen=True, slots=True)
class TrainingStart:
    """A training begins, or goes on, at `epoch`. Sizes are without the auxiliary head."""

    config: RetrainConfig
    folder: Path | None
    device: str
    world_size: int
    num_parameters: int
    macs: int
    train_images: int
    test_images: int
    resumed: bool
    epoch: int


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """A step is done. Loss and accuracy are means over the epoch so far."""

    epoch: int
    step: int
    images: int  # in this epoch so far
    epoch_images: int
    lr: float
    batch: int
    loss: float
    accuracy: float
    images_per_second: float
    memory: float
    seconds_left: float | None  # of the whole training; None: too early to tell


@dataclass(frozen=True, slots=True)
class RetrainResult:
    """What a training ended with. `folder` is `None` for one that wrote nothing.

    `test_error` is the mean over the last `averaged_epochs` epochs.
    """

    model: Model
    folder: Path | None
    seed: int
    test_error: float
    averaged_epochs: int
    epochs: tuple[TrainingRecord, ...]
    parameters: int
    macs: int
    seconds: float


class Watcher:
    """What a watcher of any run may be told."""

    def on_validating(self, progress: Validating) -> None: ...

    def on_batch(self, record: BatchRecord) -> None: ...

    def on_message(self, text: str) -> None:
        """Something that a person should know."""

    def close(self) -> None:
        """The run is over, however it ended."""


class TrainingCallback(Watcher):
    """Watches a training. Override what you need."""

    def on_start(self, start: TrainingStart) -> None: ...

    def on_step(self, step: TrainingStep) -> None: ...

    def on_epoch(self, record: TrainingRecord) -> None: ...

    def on_end(self, result: RetrainResult) -> None: ...


class Callback(Watcher):
    """Watches a search. Override what you need."""

    def on_start(self, start: Start) -> None: ...

    def on_step(self, step: Step) -> None: ...

    def on_epoch(self, record: EpochRecord) -> None: ...

    def on_cycle(self, record: CycleRecord, pools: Pools) -> None:
        """`pools` are those after the change."""

    def on_end(self, result: SearchResult) -> None: ...

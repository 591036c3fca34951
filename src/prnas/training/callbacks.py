"""What a search tells while it runs. Callbacks watch; they change nothing."""

from dataclasses import dataclass
from pathlib import Path

from prnas.config import SearchConfig
from prnas.reporting.records import BatchRecord, CycleRecord, EpochRecord
from prnas.space.cell_pools import Pools
from prnas.space.genotype import Genotype


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


class Callback:
    """Override what you need."""

    def on_start(self, start: Start) -> None: ...

    def on_step(self, step: Step) -> None: ...

    def on_validating(self, progress: Validating) -> None: ...

    def on_batch(self, record: BatchRecord) -> None: ...

    def on_epoch(self, record: EpochRecord) -> None: ...

    def on_cycle(self, record: CycleRecord, pools: Pools) -> None:
        """`pools` are those after the change."""

    def on_message(self, text: str) -> None:
        """Something that a person should know."""

    def on_end(self, result: SearchResult) -> None: ...

    def close(self) -> None:
        """The search is over, however it ended."""

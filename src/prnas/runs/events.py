"""The events of a run, and the callbacks that receive them. Callbacks watch; they change nothing.

Searches and trainings have the same events; what only one kind of run has is `None` in the other.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.drawing.notebook import html_of
from prnas.io.errors import suggestion
from prnas.io.frames import frame_of
from prnas.models.model import Model
from prnas.runs.certainty import verdict
from prnas.runs.records import (
    BatchRecord,
    CycleRecord,
    EpochRecord,
    EvaluationRecord,
    FitRecord,
    NextTraining,
    Score,
)
from prnas.runs.showing import Facts, epoch_rows, percent, seconds, short
from prnas.space.genotype import Genotype
from prnas.space.pools import Pools


@dataclass(frozen=True, slots=True)
class RunStart:
    """A run begins, or is resumed. `cycle` and `epoch` are those of the next step, from 1."""

    config: SearchConfig | RetrainConfig  #: Its config, with every default.
    folder: Path | None  #: The run's folder; `None`: nothing is written.
    device: str  #: What it computes on.
    world_size: int  #: Number of processes.
    num_parameters: int  #: Weights of the supernet, or of the network without auxiliary head.
    train_images: int  #: Images that train the weights in an epoch.
    resumed: bool  #: Whether it goes on where it stopped.
    cycle: int  #: The cycle of the next step; a training has one.
    epoch: int  #: The epoch of the next step, within its cycle.
    pools: Pools | None = None  #: Candidates of a search.
    macs: int | None = None  #: Multiply-accumulates of a trained network for an image.
    test_images: int | None = None  #: Images that a training tests on.
    validation_images: int = 0  #: Images of a training's validation part.
    evaluations: int = 0  #: Evaluations of a searcher so far.
    notes: tuple[str, ...] = ()  #: What else a person should know of how a training begins.
    #: What was chosen by the images, and why; not of a run that is resumed.
    reasons: tuple[tuple[str, str], ...] = ()

    @property
    def is_search(self) -> bool:
        """Whether it is a search, and not a training."""
        return isinstance(self.config, SearchConfig)

    @property
    def without_supernet(self) -> bool:
        """Whether it is a search that scores cells one by one: it has no epochs."""
        return isinstance(self.config, SearchConfig) and self.config.searcher.without_supernet

    @property
    def epochs_of_cycles(self) -> tuple[int, ...]:
        """The number of epochs in each cycle; a training is one cycle."""
        if self.without_supernet:
            return ()
        if isinstance(self.config, SearchConfig):
            return tuple(cycle.epochs for cycle in self.config.schedule.cycles)
        return (self.config.training.epochs,)

    @property
    def at_end_of_cycle(self) -> bool:
        """Whether all epochs of the cycle are done, so that at most its end is left."""
        return self.without_supernet or self.epoch > self.epochs_of_cycles[self.cycle - 1]


@dataclass(frozen=True, slots=True)
class StepEvent:
    """A step is done."""

    cycle: int  #: The cycle, counted from 1 as in records.
    epoch: int  #: The epoch within its cycle, from 1.
    step: int  #: Number of steps of the epoch so far.
    grace: bool  #: Whether the epoch trains no architecture weights.
    images: int  #: Images that trained the weights in the epoch so far.
    epoch_images: int  #: Images that will train the weights in the whole epoch.
    lr: float  #: Learning rate of the weights.
    batch: int  #: Batch size.
    scores: Mapping[str, Score]  #: Means over the epoch so far, named as in `EpochRecord`.
    images_per_second: float  #: Speed of the epoch so far.
    memory: float  #: Peak, in bytes.
    seconds_left: float | None  #: For the whole run; `None` if it is too early to tell.
    used: float | None = None  #: Share of a searcher's budget that is used, where it bounds steps.


@dataclass(frozen=True, slots=True)
class Validating:
    """Validation or a test makes progress."""

    images: int  #: Images that are done.
    of_images: int  #: Images in all.


class _EpochTable:
    """The epochs of a result as rows and as a data frame."""

    __slots__ = ()
    epochs: tuple[EpochRecord, ...]

    def rows(self) -> list[dict[str, Any]]:
        """A row for each epoch."""
        return list(epoch_rows(self.epochs))

    def to_pandas(self) -> Any:
        """The epochs as a `pandas.DataFrame`."""
        return frame_of(self.rows())


@dataclass(frozen=True, slots=True, repr=False)
class SearchResult(_EpochTable):
    """The result of a search. `folder` is `None` for a search that wrote nothing."""

    genotype: Genotype  #: The cells that were found.
    folder: Path | None  #: The run's folder.
    epochs: tuple[EpochRecord, ...]  #: The record of every epoch.
    cycles: tuple[CycleRecord, ...]  #: The record of every cycle's end.
    seconds: float  #: Duration of the search, in all its sessions.
    fit: FitRecord | None = None  #: What limits on the final network made of the genotype.
    evaluations: tuple[EvaluationRecord, ...] = ()  #: Those of a searcher, if there was one.
    config: SearchConfig | None = None  #: Its config, with every default.
    next: NextTraining | None = None  #: The network that `prnas retrain` will train.

    @property
    def how_sure(self) -> str | None:
        """One sentence of how sure the genotype is; `None` if nothing was measured."""
        mover = self.config.architecture.mover if self.config else "architecture.travel"
        return verdict(self.cycles, mover)

    @property
    def validation_accuracy(self) -> float | None:
        """The accuracy of the last validation."""
        for epoch in reversed(self.epochs):
            if "validation" in epoch.scores:
                return epoch.scores["validation"].accuracy
        return None

    def _facts(self) -> Facts:
        return [
            *_config_facts(self.config),
            ("validation", percent(self.validation_accuracy)),
            ("epochs", str(len(self.epochs))),
            ("time", seconds(self.seconds)),
            *_written(self.folder),
        ]

    def __repr__(self) -> str:
        return short("SearchResult", self._facts())

    def _repr_html_(self) -> str:
        return html_of("search", self._facts(), self.genotype)


@dataclass(frozen=True, slots=True, repr=False)
class RetrainResult(_EpochTable):
    """The result of a training. `folder` is `None` for one that wrote nothing."""

    model: Model  #: The trained model.
    folder: Path | None  #: The run's folder.
    seed: int  #: The training's seed.
    test_error: float  #: The mean over the last `averaged_epochs` epochs, from 0 to 1.
    averaged_epochs: int  #: Number of these epochs.
    epochs: tuple[EpochRecord, ...]  #: The record of every epoch.
    parameters: int  #: Parameters of the network, without auxiliary head.
    macs: int  #: Multiply-accumulates for an image.
    seconds: float  #: Duration of the training, in all its sessions.
    validation: Score | None = None  #: Score of the model, if there was a validation part.
    kept_epoch: int | None = None  #: The epoch whose weights were kept, if it was chosen.
    config: RetrainConfig | None = None  #: Its config, with every default.

    def _facts(self) -> Facts:
        return [
            *_config_facts(self.config),
            ("test error", percent(self.test_error)),
            ("parameters", f"{self.parameters:,}"),
            ("epochs", str(len(self.epochs))),
            ("time", seconds(self.seconds)),
            *_written(self.folder),
        ]

    def __repr__(self) -> str:
        return short("RetrainResult", self._facts())

    def _repr_html_(self) -> str:
        return html_of("training", self._facts(), self.model.card.genotype)


def _config_facts(config: SearchConfig | RetrainConfig | None) -> Facts:
    return [] if config is None else [("data", config.data.name), ("seed", str(config.seed))]


def _written(folder: Path | None) -> Facts:
    return [] if folder is None else [("folder", str(folder))]


class Callback:
    """Watches a run of any kind. Override what you need."""

    def on_start(self, start: RunStart) -> None:
        """The run begins, or is resumed."""

    def on_step(self, step: StepEvent) -> None:
        """A step is done."""

    def on_batch(self, record: BatchRecord) -> None:
        """The batch size is another one from now on."""

    def on_validating(self, progress: Validating) -> None:
        """Validation or a test makes progress."""

    def on_epoch(self, record: EpochRecord) -> None:
        """An epoch is over; `records.jsonl` has the same record."""

    def on_evaluation(self, record: EvaluationRecord) -> None:
        """A searcher got the score of a cell."""

    def on_cycle(self, record: CycleRecord, pools: Pools) -> None:
        """A cycle of a search is over; `pools` are those after the change."""

    def on_message(self, text: str) -> None:
        """There is something that a person should know."""

    def on_end(self, result: SearchResult | RetrainResult) -> None:
        """The run has reached its end."""

    def close(self) -> None:
        """The run is over, however it ended."""


#: Another name of `Callback`: trainings have the same hooks as searches.
TrainingCallback = Callback
_HOOKS = frozenset(name for name in vars(Callback) if name.startswith("on_"))


def check_callbacks(callbacks: Iterable[object]) -> None:
    """Raise a `TypeError` for what is no callback, and for a hook that no run would call."""
    if not isinstance(cast(object, callbacks), Iterable) or isinstance(callbacks, Callback):
        raise TypeError(
            f"callbacks must be a list of prnas.Callback objects, got {callbacks!r:.200}"
        )
    for callback in callbacks:
        if isinstance(callback, type) and issubclass(callback, Callback):
            name = callback.__name__
            raise TypeError(f"{name} is a class; a callback is an object of it: {name}()")
        if not isinstance(callback, Callback):
            raise TypeError(
                f"a callback must be a prnas.Callback object, got {callback!r:.200}. Derive a "
                f"class from prnas.Callback, with any of {', '.join(sorted(_HOOKS))}, close"
            )
        for name in dir(callback):
            if name.startswith("on_") and name not in _HOOKS:
                raise TypeError(
                    f"{type(callback).__name__}.{name} would never be called: there is no such "
                    f"event.{suggestion(name, _HOOKS)}"
                )

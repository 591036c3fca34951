"""What a run is told: typed, checked, and enough to repeat it from that alone."""

from collections.abc import Collection, Sequence
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    model_validator,
)
from pydantic import PlainSerializer as Serializer

from prnas.config.overrides import apply_overrides
from prnas.io.errors import suggestion
from prnas.io.reading import validated
from prnas.space.genotype import MAX_NODES
from prnas.space.schedule import MIN_CELLS, MOST_CELLS, MOST_CHANNELS, Schedule, paper_schedule
from prnas.space.scores import Scores, softmax
from prnas.space.setting import SETTINGS, Setting, named_setting, setting_to_data

Rate = Annotated[float, Field(gt=0, le=1_000, allow_inf_nan=False)]
Decay = Annotated[float, Field(ge=0, le=1_000, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, lt=1)]
Momentum = Annotated[float, Field(ge=0, lt=1)]


class Section(BaseModel):
    """A part of a config."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ImagesConfig(Section):
    """The images, and how they are varied during training."""

    name: Annotated[str, Field(min_length=1, max_length=4096)] = "cifar10"
    root: Annotated[str, Field(min_length=1, max_length=4096)] | None = None  # of downloaded files
    image_size: Annotated[int, Field(ge=1, le=4096)] | None = None  # None: as the data has it
    images: Annotated[int, Field(ge=4)] | None = None  # of the training part; None: all of it
    test_share: Share = 0.2  # of a folder or file without a test part
    broken: Literal["refuse", "skip"] = "refuse"  # images that cannot be read
    storage: Literal["auto", "memory", "stream"] = "auto"
    workers: Annotated[int, Field(ge=0, le=256)] = 2  # processes that read a streamed set
    flip: bool = True
    crop_padding: Annotated[int, Field(ge=0, le=1_000)] = 4
    cutout: Annotated[int, Field(ge=0, le=10_000)] = 0


class DataConfig(ImagesConfig):
    """The images of a search, of which one part trains architecture weights."""

    architecture_share: Share = 0.5  # of the training images; the rest trains network weights


class NetworkConfig(Section):
    """The supernet; a cycle of the schedule may set its own cells and channels."""

    cells: Annotated[int, Field(ge=MIN_CELLS, le=MOST_CELLS)] = 8
    channels: Annotated[int, Field(ge=1, le=MOST_CHANNELS)] = 16
    nodes: Annotated[int, Field(ge=1, le=MAX_NODES)] = 4
    output: Literal["concat", "mean"] = "concat"


class WeightsConfig(Section):
    """How network weights are trained: SGD, cosine from `lr` to `lr_min` in every cycle."""

    lr: Rate = 0.025
    lr_min: Decay = 0.01
    momentum: Momentum = 0.9
    weight_decay: Decay = 3e-4
    gradient_norm: Rate = 5.0

    @model_validator(mode="after")
    def _falls(self) -> "WeightsConfig":
        if self.lr_min > self.lr:
            raise ValueError(f"lr_min ({self.lr_min}) must not exceed lr ({self.lr})")
        return self


# The relaxations by name, each with the scores by which it judges candidates; and the steps.
# A new one has a line here and a class of that name in nets/relaxation.py or searching/step.py.
RELAXATIONS: dict[str, Scores] = {"softmax": softmax}
STEPS: list[str] = ["first-order"]


def _known_relaxation(name: str) -> str:
    return _known(name, RELAXATIONS, "relaxation")


def _known_step(name: str) -> str:
    return _known(name, STEPS, "step")


def _known(name: str, choices: Collection[str], kind: str) -> str:
    if name not in choices:
        raise ValueError(f"no {kind} is called '{name:.60}'.{suggestion(name, choices)}")
    return name


class ArchitectureConfig(Section):
    """How architecture weights are trained (Adam), and how they mix the candidates."""

    relaxation: Annotated[str, AfterValidator(_known_relaxation)] = "softmax"
    step: Annotated[str, AfterValidator(_known_step)] = "first-order"
    lr: Rate = 6e-4
    betas: Annotated[tuple[Momentum, Momentum], Field(strict=False)] = (0.5, 0.999)
    weight_decay: Decay = 1e-3
    gradient_norm: Rate = 5.0


class BatchConfig(Section):
    """The batch size: `min` + n x `multiple`, at most `max`, as memory allows."""

    min: Annotated[int, Field(ge=1, le=1_000_000)] = 24
    multiple: Annotated[int, Field(ge=1, le=1_000_000)] = 8
    max: Annotated[int, Field(ge=1, le=1_000_000)] = 128
    memory_share: Annotated[float, Field(gt=0, le=1)] = 0.95
    every: Annotated[int, Field(ge=1, le=1_000_000)] = 5

    @model_validator(mode="after")
    def _ordered(self) -> "BatchConfig":
        if self.min > self.max:
            raise ValueError(f"min ({self.min}) must not exceed max ({self.max})")
        return self


class DerivationConfig(Section):
    """How the genotype is read off: bounds on the skips of each cell, if any."""

    max_skips_normal: Annotated[int, Field(ge=0)] | None = None
    max_skips_reduction: Annotated[int, Field(ge=0)] | None = None


class ValidationConfig(Section):
    """When the supernet is validated on the architecture half, and in what batches."""

    epochs: Literal["all", "last-five"] = "all"  # of each cycle
    batch: Annotated[int, Field(ge=1, le=1_000_000)] = 128


class CheckpointConfig(Section):
    """When the whole state is saved, besides the end of every epoch."""

    every_minutes: Annotated[float, Field(gt=0, le=100_000)] = 10.0
    keep: Annotated[int, Field(ge=1, le=1_000)] = 2


class ComputeConfig(Section):
    """What a run is computed on. Names of accelerators and precisions are Lightning Fabric's."""

    accelerator: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    devices: Annotated[int, Field(ge=1, le=1024)] = 1
    precision: Literal["32-true", "64-true", "bf16-mixed"] = "32-true"
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None  # of each process; None: PyTorch's
    compile: bool = False
    recompute: bool = False  # less memory for a little time, and the same result
    memory_limit: Annotated[float, Field(gt=0, le=1e6)] | None = None  # GB; None: what there is
    timeout_minutes: Annotated[float, Field(gt=0, le=100_000)] = 10.0  # wait for another process


class RunConfig(Section):
    """What every kind of run is told."""

    description: Annotated[str, Field(max_length=10_000)] = ""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    checkpoints: CheckpointConfig = CheckpointConfig()
    compute: ComputeConfig = ComputeConfig()

    _last: ClassVar[tuple[str, ...]] = ("checkpoints", "compute")  # in a file: what matters least

    @property
    def batch_rule(self) -> BatchConfig:
        raise NotImplementedError

    @property
    def images(self) -> ImagesConfig:
        raise NotImplementedError

    def to_data(self) -> dict[str, Any]:
        """Plain data, every default written out, that `from_data` reads back."""
        data = self.model_dump(mode="json")
        last = {name: data.pop(name) for name in self._last}
        return {"task": data.pop("task"), **data, **last}

    @classmethod
    def from_data(cls, data: Any, overrides: Sequence[str] = ()) -> Self:
        """The config in parsed YAML, then `overrides` like `schedule.cycles.0.epochs=5`.

        A `FormatError` names every problem with its place.
        """
        config = validated(_adapter(cls), {} if data is None else data, "config")
        if not overrides:
            return config
        changed = apply_overrides(config.to_data(), overrides, cls._write_out_names)
        return validated(_adapter(cls), changed, "config")

    @classmethod
    def _write_out_names(cls, data: dict[str, Any]) -> None:
        """Replace names by what they stand for."""


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _setting_by_name(data: Any) -> Any:
    return setting_to_data(named_setting(data)) if isinstance(data, str) else data


SettingField = Annotated[Setting, BeforeValidator(_setting_by_name), Serializer(setting_to_data)]


class SearchConfig(RunConfig):
    """A whole search. The defaults are the paper's, in its DARTS-like setting."""

    task: Literal["search"] = "search"
    space: SettingField = SETTINGS["darts-like"]
    schedule: Schedule = Field(default_factory=paper_schedule)
    network: NetworkConfig = NetworkConfig()
    data: DataConfig = DataConfig()
    weights: WeightsConfig = WeightsConfig()
    architecture: ArchitectureConfig = ArchitectureConfig()
    batch: BatchConfig = BatchConfig()
    derivation: DerivationConfig = DerivationConfig()
    validation: ValidationConfig = ValidationConfig()

    @model_validator(mode="after")
    def _pools_reach_their_sizes(self) -> "SearchConfig":
        if problems := self.schedule.pool_problems(len(self.space.initial_pool)):
            raise ValueError("schedule." + "; schedule.".join(problems))
        return self

    @property
    def batch_rule(self) -> BatchConfig:
        return self.batch

    @property
    def images(self) -> ImagesConfig:
        return self.data

    @classmethod
    def _write_out_names(cls, data: dict[str, Any]) -> None:
        data["space"] = _setting_by_name(data["space"])
